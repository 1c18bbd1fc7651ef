"""A halt as rows: who ends, who goes on, and who wakes nobody."""

from __future__ import annotations

from typing import Any

import pytest

from agentmesh.domain.ids import AgentId
from agentmesh.domain.shape import Shape
from agentmesh.domain.states import AgentStatus
from agentmesh.store import agents, steps
from tests.fixtures.mesh import Mesh

pytestmark = pytest.mark.only_rows
FORM = {"type": "object", "properties": {"result": {"type": "string"}}}
WORDS = "guard halted the work: no"


def guard(mesh: Mesh, parent: AgentId, **more: Any) -> AgentId:
    shape = Shape(schema=FORM, definition={"name": "guard", "halt": True, **more})
    return mesh.run(agents.fork, parent, "guard", "look", shape=shape, report=True)


def worker_of(mesh: Mesh, parent: AgentId, name: str) -> AgentId:
    """Fork as a tool does: the child owes its parent a report."""
    child = mesh.run(agents.fork, parent, name, "work", report=True)
    mesh.begin(child)
    return child


def halt(mesh: Mesh, child: AgentId) -> AgentStatus:
    return mesh.run(steps.halt, mesh.call(child, "report")[0], {"result": "no"})


def last(mesh: Mesh, agent: AgentId) -> tuple[str, str | None]:
    return mesh.run(agents.last_output, agent)


def test_an_answer_of_the_same_instant_stays_and_the_turn_ends_halted(mesh: Mesh):
    root = mesh.begin(mesh.root)
    halt(mesh, guard(mesh, mesh.root))
    assert mesh.status(mesh.root) == "running"
    assert mesh.run(steps.finish_step, root, {"text": "all is well"}, [], {}).status is AgentStatus.IDLE
    assert [kind for kind, _ in mesh.rows(mesh.root)][-2:] == ["assistant", "error"]
    assert last(mesh, mesh.root) == ("", WORDS)


def test_what_those_end_with_who_stop_later_wakes_nobody(mesh: Mesh):
    mid = worker_of(mesh, mesh.root, "mid")
    other = worker_of(mesh, mid, "other")
    halt(mesh, guard(mesh, mid))
    assert last(mesh, mesh.root) == ("", WORDS)
    for agent in (mid, other):
        assert mesh.run(steps.stop_turn, mesh.lease(agent)) is AgentStatus.IDLE
    assert [mesh.status(agent) for agent in (mesh.root, mid)] == ["idle", "idle"]
    told = "select (about, failed, read_at is not null, body)::text from agentmesh.mail where recipient = %s"
    told += " and about = 'halt'"
    assert mesh.column(told, mid) == mesh.column(told, mesh.root) == [f'(halt,t,t,"{WORDS}")']
    assert [content["quiet"] for kind, content in mesh.rows(mid) if content.get("about") == "halt"] == [True]


def test_a_person_who_writes_meanwhile_is_heard(mesh: Mesh):
    """The report of one who stops later must not hold back what a person wrote before it."""
    mid = worker_of(mesh, mesh.root, "mid")
    other = worker_of(mesh, mid, "other")
    halt(mesh, guard(mesh, mid))
    mesh.send(None, mid, "do something else")
    mesh.run(steps.stop_turn, mesh.lease(other))
    assert mesh.run(steps.stop_turn, mesh.lease(mid)) is AgentStatus.RUNNING
    assert "do something else" in str(mesh.rows(mid)[-2:])


def test_an_agent_that_a_person_writes_to_goes_on_with_all_below_it(mesh: Mesh):
    mine = mesh.fork(mesh.root, "mine", "do this for me")
    mesh.begin(mine)
    below = worker_of(mesh, mine, "below")
    new = mesh.fork(mesh.root, "new", "not read yet")
    halt(mesh, guard(mesh, mesh.root))
    for agent in (mine, below, new):
        assert mesh.one("select interrupt_turn from agentmesh.agents where id = %s", agent) is None


def test_all_who_work_for_it_stop_also_below_an_idle_one(mesh: Mesh):
    mid = worker_of(mesh, mesh.root, "mid")
    below = worker_of(mesh, mid, "below")
    mesh.answer(mid)
    halt(mesh, guard(mesh, mesh.root))
    assert last(mesh, mid) == ("done", None)
    assert mesh.one("select halted from agentmesh.agents where id = %s", below) == WORDS


def test_a_turn_that_begins_later_is_no_longer_halted(mesh: Mesh):
    halt(mesh, guard(mesh, mesh.root))
    assert mesh.answer(mesh.root, "again") is AgentStatus.IDLE
    assert last(mesh, mesh.root) == ("again", None)


def test_a_fork_of_it_may_not_halt(mesh: Mesh):
    child = mesh.fork(guard(mesh, mesh.root), "copy")
    assert mesh.one("select may_halt from agentmesh.agents where id = %s", child) is False


def test_a_long_reason_is_cut(mesh: Mesh):
    call = mesh.call(guard(mesh, mesh.root), "report")[0]
    mesh.run(steps.halt, call, {"result": "x" * 100_000})
    assert "96000 characters cut" in str(last(mesh, mesh.root)[1])
