"""Interrupting until all agents rest: once for the API, ``agentmesh run`` and the screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from agentmesh.app import interrupting
from agentmesh.app.interrupting import interrupt_until_rest
from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import AgentView
from agentmesh.domain.states import AgentStatus
from agentmesh.store import agents, steps
from agentmesh.store.tx import Database
from tests.fixtures.mesh import Mesh


def _look(db: Database, mesh: Mesh) -> Callable[[], list[AgentView]]:
    return lambda: db.run(agents.view, mesh.session)


def _no_pause(_running: Sequence[AgentId]) -> None:
    """Go on at once."""


def test_all_that_work_are_interrupted_parents_first(db: Database, mesh: Mesh):
    child = mesh.fork(mesh.root, "child", "work")
    grandchild = mesh.fork(child, "grandchild", "work")
    idle = mesh.fork(mesh.root, "idle")
    mesh.send(None, mesh.root, "work")
    stopped = interrupt_until_rest(db, _look(db, mesh), _no_pause)
    assert [ref.id for ref in stopped.interrupted] == [mesh.root, child, grandchild]
    assert stopped.running == []
    assert {mesh.status(one) for one in (mesh.root, child, grandchild, idle)} == {AgentStatus.IDLE}


@pytest.fixture
def child(mesh: Mesh) -> AgentId:
    """A child that a worker runs and that owes its idle parent, the root, a report."""
    made = mesh.fork(mesh.root, "child", "work", mesh.call(mesh.root, "fork")[0])
    mesh.answer(mesh.root)
    mesh.begin(made)
    return made


def test_no_parent_is_woken_by_what_its_child_reports(db: Database, mesh: Mesh, child: AgentId):
    stopped = interrupt_until_rest(db, _look(db, mesh), lambda _running: mesh.run(steps.stop_turn, mesh.lease(child)))
    assert [ref.id for ref in stopped.interrupted] == [child], "the root was idle, and stays so"
    assert (mesh.status(child), mesh.status(mesh.root)) == (AgentStatus.IDLE, AgentStatus.IDLE)
    assert mesh.unread(mesh.root) == ["interrupted by the user"]


def test_a_parent_that_is_not_meant_hears_of_its_child(db: Database, mesh: Mesh, child: AgentId):
    interrupt_until_rest(
        db,
        lambda: [view for view in db.run(agents.view, mesh.session) if view.id == child],
        lambda _running: mesh.run(steps.stop_turn, mesh.lease(child)),
    )
    assert (mesh.status(child), mesh.status(mesh.root)) == (AgentStatus.IDLE, AgentStatus.RUNNING)


def test_nothing_is_done_where_nobody_works(db: Database, mesh: Mesh):
    assert interrupt_until_rest(db, _look(db, mesh), _no_pause) == ([], [])


def test_an_agent_that_is_woken_meanwhile_is_interrupted_too_and_named_once(db: Database, mesh: Mesh):
    child = mesh.fork(mesh.root, "child", "work")
    mesh.begin(child)  # a worker owns it: it is told to stop, and may take a while
    rounds: list[str] = []

    def pause(_running: Sequence[AgentId]) -> None:
        rounds.append("pause")
        if len(rounds) == 1:
            mesh.send(child, mesh.root, "wake up")
        mesh.conn.execute("update agentmesh.agents set worker_id = null where id = %s", [child])  # its worker died

    stopped = interrupt_until_rest(db, _look(db, mesh), pause)
    assert [ref.name for ref in stopped.interrupted] == ["child", "root"]
    assert stopped.running == []


def test_what_does_not_stop_in_time_is_returned(db: Database, mesh: Mesh, monkeypatch):
    monkeypatch.setattr(interrupting, "_SETTLE", 0.0)
    child = mesh.fork(mesh.root, "child", "work")
    mesh.begin(child)
    stopped = interrupt_until_rest(db, _look(db, mesh), _no_pause)
    assert [ref.id for ref in stopped.interrupted] == [child]
    assert [view.id for view in stopped.running] == [child]
