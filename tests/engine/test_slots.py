"""On a server with few slots, agents that begin alike take turns: only one slot has to read what they begin with."""

from __future__ import annotations

import threading

import pytest

from agentmesh.engine import prefixes
from agentmesh.llm.port import Usage
from agentmesh.llm.simulator.reply import Fault, FaultKind, ScriptedReply
from tests.engine.test_prefixes import HELD, NAMES, SLOTS, Answers, fork_all, together, until_held
from tests.fixtures.engine import Rig


@pytest.mark.parametrize("workers", [1, 4])
def test_they_take_turns_in_all_workers(rig: Rig, workers):
    answers = Answers(rig)
    fork_all(rig)
    for _ in range(workers):
        rig.worker(concurrency=4 // workers, **SLOTS)
    until_held(rig, answers, prefixes.SLOT_ACTIVITY)
    answers.go_on.set()
    rig.rest()
    assert sorted(answers.asked) == sorted(NAMES)
    assert rig.one("select count(*) from agentmesh.slots") == 0


@pytest.mark.slow
def test_the_first_token_is_not_enough(rig: Rig):
    answers = Answers(rig)
    answers.first = ScriptedReply("one two three", chunk_size=4, chunk_delay=1.0)
    answers.go_on.set()
    fork_all(rig)
    rig.worker(**SLOTS)
    rig.until(lambda: rig.one(HELD, prefixes.SLOT_ACTIVITY) == len(NAMES) - 1, "that the others wait")
    rig.rest()
    assert sorted(answers.asked) == sorted(NAMES)


def test_a_call_that_fails_lets_the_next_one_go(rig: Rig):
    answers = Answers(rig)
    answers.first = ScriptedReply("x", fault=Fault(FaultKind.STATUS, status=400))
    fork_all(rig)
    rig.worker(**SLOTS)
    until_held(rig, answers, prefixes.SLOT_ACTIVITY)
    answers.go_on.set()
    rig.rest()
    assert sorted(answers.asked) == sorted(NAMES)


def test_the_worker_of_the_first_one_is_killed(rig: Rig):
    answers = Answers(rig)
    process = rig.process(concurrency=1, **SLOTS)
    fork_all(rig, NAMES[:1])
    rig.until(lambda: answers.asked, "the first request")
    rig.worker(**SLOTS)
    fork_all(rig, NAMES[1:])
    until_held(rig, answers, prefixes.SLOT_ACTIVITY)
    process.process.kill()
    assert process.join() == -9
    rig.bury(process.worker_id)
    rig.until(lambda: len(answers.asked) > 1, "a second request")
    answers.go_on.set()
    rig.rest()
    assert set(answers.asked) == set(NAMES)


def test_who_has_waited_long_enough_takes_a_slot_of_its_own(rig: Rig, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(prefixes, "_UNKNOWN", 0.3)
    monkeypatch.setattr(prefixes, "_LOOK", 0.1)
    answers = Answers(rig)
    fork_all(rig)
    rig.worker(**SLOTS)
    rig.until(lambda: len(answers.asked) >= 2, "a second request, while the first one is not answered")
    answers.go_on.set()
    rig.rest()
    assert sorted(answers.asked) == sorted(NAMES)


@pytest.mark.parametrize(
    "options", [{"prefix_gate": 0}, {"prefix_gate": 1_000_000}, {"timeouts": {}}], ids=["off", "short", "no slots"]
)
def test_nobody_waits_without_slots_or_below_the_limit(rig: Rig, options):
    barrier = threading.Barrier(4)
    for name in NAMES:
        rig.script(name, together(barrier))
    fork_all(rig)
    rig.worker(**{**SLOTS, "prefix_gate": 0, **options})
    rig.rest()
    assert rig.one("select count(*) from agentmesh.slots") == 0


def test_without_its_rows_all_go_at_once(rig: Rig):
    barrier = threading.Barrier(4)
    for name in NAMES:
        rig.script(name, together(barrier))
    fork_all(rig)
    rig.conn.execute("alter table agentmesh.slots rename to gone")
    rig.worker(**SLOTS)
    rig.rest()
    rig.conn.execute("alter table agentmesh.gone rename to slots")


def test_how_long_reading_takes_is_learnt_from_answers(rig: Rig):
    found = prefixes.Prefixes(rig.db)
    assert found._reading("m", 9_000) == 60.0
    found.saw("m", Usage(9_000, 10, 1_000), 80.0)
    assert found._reading("m", 9_000) == 90.0
    found.saw("m", Usage(9_000, 10, 8_900), 1.0)  # nearly all of it was kept
    found.saw("m", Usage(9_000, 10, estimated=True), 1.0)
    found.saw("m", Usage(9_000, 10), None)
    assert found._reading("m", 9_000) == 90.0
    assert found._reading("m", 9_000_000) == 600.0
    assert found._reading("m", 1) == 1.0
