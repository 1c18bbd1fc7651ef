"""Of agents whose conversations begin alike, one asks the model first: its server reads the beginning once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from agentmesh.engine import prefixes
from agentmesh.llm.simulator.reply import Fault, FaultKind, ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView
from tests.fixtures.engine import PATIENCE, Reply, Rig, call, do, say, who

NAMES = ("one", "two", "three", "four")
GATE: dict[str, Any] = {"prefix_gate": 500}
SLOTS: dict[str, Any] = {**GATE, "timeouts": {"slots": 2}}
"""The same for a server with few slots: its agents take turns with whole calls (test_slots.py)."""
WAYS = [(GATE, prefixes.ACTIVITY), (SLOTS, prefixes.SLOT_ACTIVITY)]
HELD = "select count(*) from agentmesh.v_agents where activity = %s"


class Answers:
    """Answers of the children; the first one comes when it may."""

    def __init__(self, rig: Rig, names: Sequence[str] = NAMES) -> None:
        self.asked: list[str] = []
        self.go_on = threading.Event()
        self.first = say("done")
        for name in names:
            rig.script(name, self._answer)

    def _answer(self, view: ChatRequestView) -> ScriptedReply:
        self.asked.append(who(view))
        if len(self.asked) == 1:
            assert self.go_on.wait(PATIENCE)
            return self.first
        return say("done")


def fork_all(rig: Rig, names: Sequence[str] = NAMES) -> None:
    for name in names:
        rig.fork(name, "work")


def together(barrier: threading.Barrier) -> Reply:
    """Return an answer that comes when as many have asked as the barrier wants; otherwise it breaks."""

    def answer(_view: ChatRequestView) -> ScriptedReply:
        barrier.wait(PATIENCE)
        return say("done")

    return answer


def until_held(rig: Rig, answers: Answers, activity: str = prefixes.ACTIVITY) -> None:
    """Wait until one was asked, and the other three wait."""
    rig.until(lambda: answers.asked, "the first request")
    rig.until(lambda: rig.one(HELD, activity) == len(NAMES) - 1, "that the others wait")
    assert len(answers.asked) == 1


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody go for impatience on a slow machine."""
    monkeypatch.setattr(prefixes, "PATIENCE", PATIENCE)


def test_the_others_wait_for_the_first_answer_to_begin(rig: Rig):
    answers = Answers(rig)
    fork_all(rig)
    rig.worker(**GATE)
    until_held(rig, answers)
    assert len(answers.asked) == 1
    answers.go_on.set()
    rig.rest()
    assert sorted(answers.asked) == sorted(NAMES)


@pytest.mark.slow
def test_the_first_token_is_enough(rig: Rig):
    answers = Answers(rig)
    answers.first = ScriptedReply("one two three", chunk_size=4, chunk_delay=PATIENCE)
    fork_all(rig)
    rig.worker(**GATE)
    until_held(rig, answers)
    answers.go_on.set()
    rig.until(lambda: len(answers.asked) == 4, "the requests of the others, while the first is answered")
    rig.interrupt(answers.asked[0])
    rig.rest()


def test_the_wait_holds_in_all_workers(rig: Rig):
    answers = Answers(rig)
    fork_all(rig)
    workers = [rig.worker(concurrency=1, tick=1000.0, **GATE) for _ in range(4)]
    until_held(rig, answers)
    owners = "select count(distinct worker_id) from agentmesh.agents"
    assert (len(answers.asked), rig.one(owners), len(workers)) == (1, 4, 4)
    answers.go_on.set()
    rig.rest()
    assert sorted(answers.asked) == sorted(NAMES)


def test_what_is_warm_is_not_waited_for(rig: Rig):
    answers = Answers(rig)
    answers.go_on.set()
    rig.worker(**GATE)
    fork_all(rig, NAMES[:1])
    rig.rest()
    gate = threading.Barrier(3)
    for name in NAMES[1:]:
        rig.script(name, together(gate))
    fork_all(rig, NAMES[1:])
    rig.rest()  # the three were asked at the same time, else the barrier breaks


def test_forks_whose_parent_has_asked_all_go_at_once(rig: Rig):
    gate = threading.Barrier(4)
    rig.script("root", do(*(call("fork", name=name, prompt="work") for name in NAMES)), say("forked"))
    for name in NAMES:
        rig.script(name, together(gate))
    rig.worker(concurrency=8, **GATE)
    rig.run()
    assert rig.one("select count(*) from agentmesh.prefixes") == 0


@pytest.mark.parametrize("gate", [0, 1_000_000], ids=["off", "short prefix"])
def test_a_short_prefix_is_not_waited_for(rig: Rig, gate):
    barrier = threading.Barrier(4)
    for name in NAMES:
        rig.script(name, together(barrier))
    fork_all(rig)
    rig.worker(prefix_gate=gate)
    rig.rest()
    assert rig.one("select count(*) from agentmesh.prefixes") == 0


def test_a_call_that_fails_lets_the_next_one_go_first(rig: Rig):
    answers = Answers(rig)
    answers.first = ScriptedReply("x", fault=Fault(FaultKind.STATUS, status=400))
    fork_all(rig)
    rig.worker(**GATE)
    until_held(rig, answers)
    answers.go_on.set()
    rig.rest()
    assert sorted(answers.asked) == sorted(NAMES)
    assert rig.one("select count(*) from agentmesh.prefixes where warm_at is not null") == 1


@pytest.mark.parametrize("how", ["interrupt", "kill"])
@pytest.mark.parametrize(("options", "activity"), WAYS, ids=["first token", "slots"])
def test_the_first_one_is_stopped_and_the_others_go_on(rig: Rig, options, activity, how):
    answers = Answers(rig)
    fork_all(rig)
    rig.worker(**options)
    until_held(rig, answers, activity)
    getattr(rig, how)(answers.asked[0])
    rig.until(lambda: len(answers.asked) == 4, "the requests of the others")
    answers.go_on.set()
    rig.rest()


@pytest.mark.parametrize("how", ["interrupt", "kill"])
@pytest.mark.parametrize(("options", "activity"), WAYS, ids=["first token", "slots"])
def test_who_waits_can_be_stopped(rig: Rig, options, activity, how):
    answers = Answers(rig)
    fork_all(rig)
    rig.worker(**options)
    until_held(rig, answers, activity)
    stopped = next(name for name in NAMES if name not in answers.asked)
    getattr(rig, how)(stopped)
    rig.until(lambda: rig.status(stopped) == ("dead" if how == "kill" else "idle"), "its end")
    assert len(answers.asked) == 1
    answers.go_on.set()
    rig.rest()
    assert stopped not in answers.asked


def test_a_model_that_never_answers_is_waited_for_only_so_long(rig: Rig, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(prefixes, "PATIENCE", 0.2)
    answers = Answers(rig)
    fork_all(rig)
    rig.worker(**GATE)
    rig.until(lambda: len(answers.asked) == 4, "the requests of all")
    answers.go_on.set()
    rig.rest()


@pytest.mark.slow
def test_the_worker_of_the_first_one_is_killed(rig: Rig):
    """Its process has the real patience: five seconds after its death the others go."""
    answers = Answers(rig)
    process = rig.process(prefix_gate=500, concurrency=1)
    fork_all(rig, NAMES[:1])
    rig.until(lambda: answers.asked, "the first request")
    rig.worker(**GATE)
    fork_all(rig, NAMES[1:])
    until_held(rig, answers)
    process.process.kill()
    assert process.join() == -9
    rig.until(lambda: len(answers.asked) > 1, "a second request")
    answers.go_on.set()
    rig.bury(process.worker_id)
    rig.rest()
    assert set(answers.asked) == set(NAMES)


def test_without_its_rows_all_go_at_once(rig: Rig):
    rig.conn.execute("alter table agentmesh.prefixes rename to gone")
    barrier = threading.Barrier(4)
    for name in NAMES:
        rig.script(name, together(barrier))
    fork_all(rig)
    rig.worker(**GATE)
    rig.rest()
    rig.conn.execute("alter table agentmesh.gone rename to prefixes")
