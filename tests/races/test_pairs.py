"""Every verb against every other, in both orders: the first holds its locks, the second comes meanwhile.

The second must end (never in a deadlock), with success or with a refusal that says why, and all invariants must hold.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from agentmesh.domain.rows import Allowance
from agentmesh.domain.shape import Shape
from agentmesh.domain.states import PermissionMode, WaitOutcome
from agentmesh.store import agents, external, mailbox, requests, sessions, steps, travel, waits, workers
from tests.fixtures.blocking import Stage, sqlstate
from tests.fixtures.invariants import violations
from tests.fixtures.mesh import Mesh

pytestmark = pytest.mark.only_rows


class Scene:
    """A parent in mid-step, a working child that owes it a report, a waiter, queued, idle and dead agents."""

    def __init__(self, mesh: Mesh) -> None:
        self.root = mesh.root = mesh.new_session()
        self.session = mesh.session = mesh.session_of(mesh.root)
        fork, self.root_wait, self.root_kill = mesh.call(self.root, "fork", "wait", "kill")
        self.a = mesh.fork(self.root, "a", "work", fork)
        self.a_fork, self.a_send, delegated, self.a_task, self.a_ask = mesh.call(
            self.a, "fork", "send", "task", "task", "bash"
        )
        self.waiter = mesh.fork(self.root, "waiter", "work")
        mesh.wait(self.waiter, self.a)
        self.idle = mesh.fork(self.root, "idle")
        self.helper = mesh.task(self.a, "helper", delegated)
        mesh.begin(self.helper)
        self.asker = mesh.fork(self.root, "asker", "work")
        self.request = mesh.ask(self.asker)
        mesh.kill(mesh.fork(self.root, "dead"))
        self.targets = mesh.targets(self.a)
        self.leases = {agent: mesh.lease(agent) for agent in (self.root, self.a, self.waiter, self.helper)}
        shape = Shape(schema={"type": "object"}, definition={"name": "guard", "halt": True})
        guard = mesh.run(agents.fork, self.a, "guard", "work", shape=shape, report=True)
        self.guard_report = mesh.call(guard, "report")[0]
        self.queued = mesh.fork(self.a, "queued", "work")
        mesh.send(self.a, self.root, "unread already")
        self.guest = mesh.run(external.join, mesh.join(providers=()), mesh.run(external.guest, self.session, "guest"))
        mesh.run(waits.wait_begin, self.guest.agent_id, self.targets, 30, self.guest)
        mesh.run(external.guest, self.session, "away")
        self.worker = mesh.join()


TASK: dict[str, Any] = {
    "name": "new",
    "prompt": "x",
    "type": "t",
    "model": "demo/demo",
    "system_prompt": "x",
    "tools": [],
    "permissions": [],
    "max_steps": 5,
}
ASKED = {"ordinal": 4, "kind": "approval", "tool": "bash", "arguments": {}}
Verb = Callable[[psycopg.Connection, Scene], Any]
VERBS: dict[str, Verb] = {
    "fork": lambda conn, s: agents.fork(conn, s.a, "new", "work"),
    "fork of the past": lambda conn, s: travel.fork_at(conn, s.a, "new", 1, "work"),
    "copy of the past": lambda conn, s: travel.fork_session(conn, s.a, 1, "work"),
    "fork tool": lambda conn, s: agents.fork(conn, s.a, "new", "work", s.a_fork),
    "send": lambda conn, s: mailbox.send(conn, None, s.a, "from the user"),
    "send tool": lambda conn, s: mailbox.send(conn, s.a, s.root, "report", None, s.a_send),
    "wait begins": lambda conn, s: waits.wait_begin(conn, s.root, s.targets, 30, s.root_wait),
    "person waits": lambda conn, s: waits.wait_begin(conn, s.idle, s.targets, 30),
    "wait ends": lambda conn, s: waits.wait_take(conn, s.waiter, WaitOutcome.TIMEOUT, s.leases[s.waiter]),
    "step begins": lambda conn, s: steps.begin_step(conn, s.leases[s.a], 0),
    "turn ends": lambda conn, s: steps.fail_turn(conn, s.leases[s.a], {"error": "broken"}),
    "turn of parent ends": lambda conn, s: steps.fail_turn(conn, s.leases[s.root], {"error": "broken"}),
    "kill": lambda conn, s: agents.kill(conn, s.a),
    "kill tool": lambda conn, s: agents.kill(conn, s.a, s.root, s.root_kill),
    "interrupt": lambda conn, s: agents.interrupt(conn, s.a),
    "task tool": lambda conn, s: steps.task(conn, s.a_task, TASK),
    "task ends": lambda conn, s: steps.finish_step(conn, s.leases[s.helper], {"text": "done"}, [], {}),
    "halt": lambda conn, s: steps.halt(conn, s.guard_report, {"n": 1}),
    "kill of a helper": lambda conn, s: agents.kill(conn, s.helper),
    "call asks": lambda conn, s: steps.ask(conn, s.a_ask, Allowance(attended=True), [ASKED], [], []),
    "answer": lambda conn, s: requests.answer(conn, s.request, {"decision": "no"}, "somebody"),
    "answer for always": lambda conn, s: requests.answer(conn, s.request, {"decision": "always"}, "somebody"),
    "mode": lambda conn, s: sessions.set_mode(conn, s.session, PermissionMode.ALL),
    "interrupt of a parent": lambda conn, s: agents.interrupt(conn, s.root),
    "claim": lambda conn, s: workers.claim(conn, s.worker, 10),
    "release": lambda conn, s: workers.release(conn, s.leases[s.a].worker_id),
    "rename": lambda conn, s: agents.rename(conn, s.a, "new"),
    "reap": lambda conn, s: sessions.reap(conn, s.session),
    "guest joins": lambda conn, s: external.join(conn, s.worker, external.guest(conn, s.session, "away")),
    "guest sends": lambda conn, s: mailbox.send(conn, s.guest.agent_id, s.a, "hello", None, s.guest),
    "guest forks": lambda conn, s: agents.fork(conn, s.guest.agent_id, "new", "work", s.guest),
    "guest gives up": lambda conn, s: external.leave_wait(conn, s.guest),
    "guest is interrupted": lambda conn, s: agents.interrupt(conn, s.guest.agent_id),
    "guest leaves": lambda conn, s: workers.release(conn, s.guest.worker_id),
    "end session": lambda conn, s: sessions.end_session(conn, s.session),
}
REFUSALS = {"AM001", "AM002", "AM005", "AM011", "AM016", "AM037", "AM051", "AM053", "AM070"}
"""What one verb may do to the other; 40001 is a wait that says "call again"."""


@pytest.mark.parametrize("first", VERBS)
def test_no_pair_of_verbs_breaks_anything(mesh: Mesh, stage: Stage, first: str):
    troubles = [(first, second, trouble) for second in VERBS if (trouble := race(mesh, stage, first, second))]
    assert troubles == []
    assert violations(mesh.conn) == []


def race(mesh: Mesh, stage: Stage, first: str, second: str) -> str | None:
    """Run the pair in a session of its own; return what went wrong."""
    mesh.worker = mesh.join()
    scene = Scene(mesh)
    VERBS[first](stage.holder, scene)
    other = stage.meanwhile(lambda conn: _again(conn, VERBS[second], scene))
    stage.holder.commit()
    state = sqlstate(other.result)
    return None if state is None or state in REFUSALS else state


def _again(conn: psycopg.Connection, verb: Verb, scene: Scene) -> Any:
    """Call the verb; once more if PostgreSQL says that it changed nothing, as the store does."""
    try:
        return verb(conn, scene)
    except psycopg.errors.SerializationFailure:
        return verb(conn, scene)
