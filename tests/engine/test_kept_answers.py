"""Issue 17, point 15: an answer that the database does not take at once is kept, and the model is not asked again."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from agentmesh.domain.errors import DatabaseBusy, DatabaseUnreachable
from agentmesh.engine import crew, keeping
from agentmesh.llm.simulator.reply import Fault, FaultKind, ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.store import pool, steps, tx
from tests.fixtures.engine import Reply, Rig, call, do, say
from tests.fixtures.mesh import Mesh


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    """Locks are waited for 5 s, six times over."""
    monkeypatch.setitem(pool._LIMITS, "lock_timeout", "20ms")
    monkeypatch.setattr(tx, "_ATTEMPTS", 1)
    monkeypatch.setattr(crew, "_AGAIN", 0.02)
    monkeypatch.setattr(keeping, "_AGAIN", 0.02)


@contextmanager
def held(rig: Rig) -> Iterator[psycopg.Connection]:
    """Hold the root's row, as somebody does who has left a transaction open in psql."""
    with psycopg.connect(rig.url) as psql:
        psql.execute("select from agentmesh.agents where id = %s for update", [rig.root])
        yield psql


def held_back(asked: threading.Event, until: threading.Event, answer: ScriptedReply) -> Reply:
    """Return an answer that says when it was asked for, and comes only after the event."""

    def reply(_view: ChatRequestView) -> ScriptedReply:
        asked.set()
        assert until.wait(20)
        return answer

    return reply


def refusals(caplog: pytest.LogCaptureFixture) -> int:
    return sum("due to lock timeout" in record.getMessage() for record in caplog.records)


def booked(rig: Rig) -> tuple[int, int]:
    """Return how many calls the root has, in its own row and in those of its calls."""
    calls = "select count(*) from agentmesh.model_calls where agent_id = %s"
    own = "select model_calls from agentmesh.agents where id = %s"
    return rig.one(own, rig.root), rig.one(calls, rig.root)


@pytest.mark.parametrize("answer", [say("done"), do(call("list_agents"))], ids=["the end", "a call"])
def test_an_answer_whose_commit_meets_a_lock_is_stored_when_the_lock_is_gone(rig, caplog, answer):
    asked, locked = threading.Event(), threading.Event()
    rig.script("root", held_back(asked, locked, answer))
    rig.worker()
    rig.prompt()
    assert asked.wait(20)
    with caplog.at_level(logging.WARNING, "agentmesh"), held(rig):
        locked.set()
        rig.until(lambda: refusals(caplog) > 10, "many tries")
        assert len(rig.requests()) == 1
    rig.rest()
    steps_made = 1 + bool(answer.tool_calls)
    assert len(rig.requests()) == steps_made
    assert booked(rig) == (steps_made, steps_made)
    assert rig.last() == ("done", None)


def test_a_step_that_cannot_begin_for_a_lock_is_no_defect_however_long_that_takes(rig, caplog):
    answered, locked = threading.Event(), threading.Event()

    def hold(moment: str, name: str) -> None:
        if (moment, name) == ("after", "finish_step") and not answered.is_set():
            answered.set()
            assert locked.wait(20)

    rig.script("root", do(call("list_agents")))
    rig.worker(hook=hold)
    rig.prompt()
    assert answered.wait(20)
    with caplog.at_level(logging.WARNING, "agentmesh"), held(rig):
        locked.set()
        rig.until(lambda: refusals(caplog) > 10, "many tries")
    rig.rest()
    assert rig.last() == ("done", None)
    assert booked(rig) == (2, 2)


def test_an_answer_is_stored_once_although_nobody_knows_whether_its_commit_was_made(rig):
    """Mail that came meanwhile has begun the next turn in the same commit: a second one would end that too."""
    asked, sent = threading.Event(), threading.Event()
    lost: list[str] = []
    rig.script("root", held_back(asked, sent, say("first")), say("second"))

    def lose(moment: str, name: str) -> None:
        if (moment, name) == ("after", "finish_step") and len(lost) < 2:
            lost.append(name)
            raise DatabaseUnreachable("lost, on purpose")

    rig.worker(hook=lose)
    rig.prompt("one")
    rig.until_asked()
    rig.prompt("two")
    sent.set()
    rig.rest()
    answers = [content["text"] for kind, content in rig.rows() if kind == "assistant"]
    assert answers == ["first", "second"]
    assert len(rig.requests()) == 2
    assert booked(rig) == (2, 2)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_answer_that_ended_the_turn_is_booked_once_although_its_commit_s_answer_was_lost(rig, moment):
    """The repetition is refused, because nobody runs the agent any more: that does not mean that it was not stored."""
    lost: list[str] = []

    def lose(when: str, name: str) -> None:
        if (when, name) == (moment, "finish_step") and not lost:
            lost.append(name)
            raise DatabaseUnreachable("lost, on purpose")

    parts = rig.worker(hook=lose)
    assert rig.run() == "done"
    rig.until(lambda: any(told.startswith("released") for told in parts.events), "the end of the run")
    assert booked(rig) == (1, 1)
    assert len(rig.requests()) == 1


def test_an_agent_that_was_taken_over_in_its_call_is_booked_twice_although_both_answers_are_equal(rig):
    """Both calls have to be paid for. The one whose answer is stored is not booked again."""
    taken: list[str] = []

    def lose(when: str, name: str) -> None:
        if (when, name) == ("before", "finish_step") and not taken:
            taken.append(name)
            rig.bury(rig.one("select worker_id from agentmesh.agents where id = %s", rig.root))
            rig.worker()
            rig.rest()

    parts = rig.worker(hook=lose)
    assert rig.run() == "done"
    rig.until(lambda: any(told.startswith("released") for told in parts.events), "the end of the first run")
    assert len(rig.requests()) == 2
    assert booked(rig) == (2, 2)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_failed_call_is_booked_once_although_nobody_knows_whether_its_commit_was_made(rig, moment):
    lost: list[str] = []

    def lose(when: str, name: str) -> None:
        if (when, name) == (moment, "fail_turn") and not lost:
            lost.append(name)
            raise DatabaseUnreachable("lost, on purpose")

    faults = iter([Fault(FaultKind.STATUS, status=401)])
    rig.script("root", lambda _view: ScriptedReply("done", fault=next(faults, None)))
    rig.worker(hook=lose)
    rig.run()
    asked = len(rig.requests())
    rig.until(lambda: booked(rig) == (asked, asked), "that each request is booked once")


def test_a_commit_that_is_made_late_after_its_repetition_changes_nothing(mesh: Mesh):
    lease = mesh.begin(mesh.root)
    after = mesh.one("select max(seq) from agentmesh.transcript where agent_id = %s", mesh.root)
    asked = [{"call_id": "1", "name": "bash", "arguments": "{}"}]
    first = mesh.run(steps.finish_step, lease, {"text": "x"}, asked, {}, after=after)
    mesh.finish(lease.call(first.seq, 0))
    again = mesh.run(steps.finish_step, lease, {"text": "x"}, asked, {}, after=after)
    assert (again.seq, again.status) == (first.seq, first.status)
    assert [kind for kind, _ in mesh.rows(mesh.root)].count("assistant") == 1
    assert mesh.one("select count(*) from agentmesh.model_calls") == 1


def test_what_an_answer_cost_is_booked_when_the_agent_was_taken_away_meanwhile(rig):
    asked, taken = threading.Event(), threading.Event()
    rig.script("root", held_back(asked, taken, say("too late")))
    parts = rig.worker(tick=3600.0)
    rig.prompt()
    assert asked.wait(20)
    rig.end()
    taken.set()
    rig.until(lambda: booked(rig) == (1, 1), "the booking")
    assert parts.worker.failed is None


def test_a_summary_whose_commit_meets_a_lock_is_kept_too():
    tries = []

    def commit() -> str:
        tries.append(1)
        if len(tries) < 4:
            raise DatabaseBusy("held")
        return "stored"

    assert keeping.keep(commit, lambda: False, "the summary") == "stored"
    tries.clear()
    with pytest.raises(DatabaseBusy):
        keeping.keep(commit, lambda: True, "the summary")
