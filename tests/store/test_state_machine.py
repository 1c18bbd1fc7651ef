"""docs/explanation/state-machine.md is true: every verb is tried on an agent in every state that the table names."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentmesh.domain.errors import Refused
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.rows import Allowance
from agentmesh.domain.states import WaitOutcome
from agentmesh.store import agents, context, leases, sessions, steps, waits, workers
from agentmesh.store.call import Lease
from tests.fixtures.mesh import Mesh, unknown

pytestmark = pytest.mark.only_rows

DOCUMENT = Path(__file__).parents[2] / "docs" / "explanation" / "state-machine.md"


class Subject:
    """The agent on which a verb is tried, with the lease that its last owner has or had."""

    def __init__(self, mesh: Mesh, state: str, *, with_call: bool) -> None:
        self.mesh = mesh
        self.id = mesh.fork(mesh.root, "subject")
        self.child = mesh.fork(self.id, "child")
        self.busy = mesh.fork(mesh.root, "busy", "work")
        self.lease = Lease(self.id, mesh.worker, 1, 1, 0)
        getattr(self, f"become_{state}")(with_call)

    def become_idle(self, with_call: bool) -> None:
        if with_call:
            self.become_working(with_call)
            self.mesh.finish(self.lease)
            self.mesh.answer(self.id)

    def become_queued(self, with_call: bool) -> None:
        if with_call:
            self.become_working(with_call)
            self.mesh.run(workers.release, self.mesh.worker)
        else:
            self.mesh.send(None, self.id)

    def become_working(self, with_call: bool) -> None:
        self.lease = self.mesh.call(self.id, "tool")[0] if with_call else self.mesh.begin(self.id)

    def become_stopping(self, with_call: bool) -> None:
        self.become_working(with_call)
        self.mesh.interrupt(self.id)

    def become_waiting(self, with_call: bool) -> None:
        wait, self.lease = self.mesh.call(self.id, "wait", "tool")
        assert self.mesh.wait(self.id, self.busy, lease=wait) is None

    def become_dead(self, with_call: bool) -> None:
        self.become_working(with_call)
        self.mesh.kill(self.id)

    def become_unknown(self, with_call: bool) -> None:
        self.id = AgentId(unknown())
        self.lease = Lease(self.id, self.mesh.worker, 1, 1, 0)

    def state(self) -> str:
        """Return the state in the words of the table."""
        row = self.mesh.conn.execute(
            "select case when a.status <> 'running' then a.status when w.waiter is not null then 'waiting'"
            " when a.worker_id is null then 'queued' when a.interrupt_turn = a.turn then 'stopping' else 'working' end"
            " from agentmesh.agents a left join agentmesh.wait w on w.waiter = a.id where a.id = %s",
            [self.id],
        ).fetchone()
        return row[0] if row else "unknown"


def _targets(s: Subject) -> Any:
    return s.mesh.targets(s.busy)


def _session(s: Subject) -> SessionId:
    return s.mesh.session if s.state() != "unknown" else SessionId(unknown())


def _calls(s: Subject) -> list[dict[str, str]]:
    return [{"call_id": "1", "name": "x", "arguments": "{}"}]


ASKED = {"ordinal": 0, "kind": "approval", "tool": "x", "arguments": {}}

VERBS: dict[str, Callable[[Subject], Any]] = {
    "send to it": lambda s: s.mesh.send(None, s.id),
    "send by it": lambda s: s.mesh.send(s.id, s.busy),
    "send, its tool": lambda s: s.mesh.send(s.id, s.busy, lease=s.lease),
    "fork of it": lambda s: s.mesh.fork(s.id, "new", "work"),
    "fork, its tool": lambda s: s.mesh.fork(s.id, "new", "work", s.lease),
    "kill of it": lambda s: s.mesh.kill(s.id),
    "kill by it": lambda s: s.mesh.kill(s.child, s.id),
    "kill, its tool": lambda s: s.mesh.kill(s.child, s.id, s.lease),
    "wait, its tool": lambda s: s.mesh.run(waits.wait_begin, s.id, _targets(s), 30, s.lease),
    "wait, its tool, over at once": lambda s: s.mesh.run(waits.wait_begin, s.id, _targets(s), 0, s.lease),
    "wait, a person's": lambda s: s.mesh.run(waits.wait_begin, s.id, _targets(s), 30),
    "wait goes on": lambda s: s.mesh.run(waits.wait_take, s.id, None, s.lease),
    "wait ends": lambda s: s.mesh.run(waits.wait_take, s.id, WaitOutcome.TIMEOUT, s.lease),
    "interrupt": lambda s: s.mesh.interrupt(s.id),
    "rename": lambda s: s.mesh.run(agents.rename, s.id, "another"),
    "reap": lambda s: s.mesh.run(sessions.reap, s.mesh.session, s.id),
    "claim": lambda s: s.mesh.claim(worker=s.mesh.join()),
    "release of its worker": lambda s: s.mesh.run(workers.release, s.lease.worker_id),
    "step begins": lambda s: s.mesh.run(steps.begin_step, s.lease, 0),
    "answer with calls": lambda s: s.mesh.run(steps.finish_step, s.lease, {"text": ""}, _calls(s), {}),
    "answer without calls": lambda s: s.mesh.run(steps.finish_step, s.lease, {"text": ""}, [], {}),
    "calls start": lambda s: s.mesh.run(steps.start_calls, s.lease, [0]),
    "calls end": lambda s: s.mesh.run(steps.finish_calls, s.lease, {0: {}}),
    "turn fails": lambda s: s.mesh.run(steps.fail_turn, s.lease, {"error": "broken"}),
    "turn stops": lambda s: s.mesh.run(steps.stop_turn, s.lease),
    "turn is skipped": lambda s: s.mesh.run(steps.skip_turn, s.lease),
    "booking of a call": lambda s: s.mesh.run(steps.book_call, s.id, {"input_tokens": 1}),
    "end of its session": lambda s: s.mesh.run(sessions.end_session, _session(s)),
    "deletion of its session": lambda s: s.mesh.run(sessions.delete_session, _session(s)),
    "clear": lambda s: s.mesh.run(context.clear, s.id),
    "mark": lambda s: s.mesh.run(context.mark, s.id),
    "mark, then rewind": lambda s: (s.mesh.run(context.mark, s.id), s.mesh.run(context.rewind, s.id)),
    "rewind to a row, then lift it": lambda s: (
        s.mesh.run(context.rewind_to, s.id, 0),
        s.mesh.run(context.restore, s.id),
    ),
    "lease, its tool": lambda s: s.mesh.run(leases.take, s.lease, "src/a"),
    "compact": lambda s: s.mesh.run(context.compact, s.id),
    "summary": lambda s: s.mesh.run(context.summarize, s.lease, {"text": "", "upto": 0}, {}, ends=False),
    "summary that was asked for": lambda s: s.mesh.run(
        context.summarize, s.lease, {"text": "", "upto": 0}, {}, ends=True
    ),
    "call asks": lambda s: s.mesh.run(steps.ask, s.lease, Allowance(attended=True), [ASKED], [], []),
    "task, its tool": lambda s: s.mesh.task(s.id, call=s.lease),
    "look at it": lambda s: s.mesh.run(agents.get, s.id),
}
WITH_CALL = {verb for verb in VERBS if "tool" in verb or verb.startswith(("call", "compact"))}


def table() -> dict[tuple[str, str], str]:
    """Return the cell of every (verb, state) of the document."""
    rows = [
        [cell.strip(" `") for cell in line.strip("|\n ").split("|")]
        for line in DOCUMENT.read_text().splitlines()
        if line.startswith("|") and not re.match(r"\|[-| ]+$", line)
    ]
    start = next(n for n, row in enumerate(rows) if row[0] == "verb")
    _, *states = rows[start]
    return {
        (row[0], state): cell
        for row in rows[start + 1 :]
        if len(row) == len(states) + 1
        for state, cell in zip(states, row[1:], strict=True)
    }


TABLE = table() if DOCUMENT.exists() else {}
STATES = ["queued", "working", "stopping", "waiting", "idle", "dead", "unknown"]


def outcome(mesh: Mesh, verb: str, state: str) -> str:
    subject = Subject(mesh, state, with_call=verb in WITH_CALL)
    assert subject.state() == state
    if verb == "deletion of its session":
        mesh.kill(subject.busy)
    try:
        VERBS[verb](subject)
    except Refused as refused:
        assert subject.state() == state, "a refusal changes nothing"
        return refused.code
    return subject.state()


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_in_every_state_does_what_the_table_says(mesh: Mesh, verb: str):
    told = {state: TABLE.get((verb, state)) for state in STATES}
    done = {}
    for state in STATES:
        mesh.worker = mesh.join()
        mesh.root = mesh.new_session()
        mesh.session = mesh.session_of(mesh.root)
        done[state] = outcome(mesh, verb, state)
    assert done == told


def test_the_table_holds_every_verb_and_every_state_and_nothing_else():
    assert set(TABLE) == {(verb, state) for verb in VERBS for state in STATES}


def test_a_wait_does_not_outlive_its_turn(mesh: Mesh):
    subject = Subject(mesh, "waiting", with_call=False)
    mesh.run(steps.fail_turn, subject.lease, {"error": "the worker broke"})
    assert mesh.run(waits.registered, subject.id) is None
    assert mesh.one("select count(*) from agentmesh.waits") == 0
