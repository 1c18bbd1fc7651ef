"""reap hides the dead and never touches the living."""

from __future__ import annotations

import pytest

from agentmesh.domain.errors import AgentBusy, UnknownAgent, UnknownSession
from agentmesh.domain.ids import SessionId
from agentmesh.store import agents, sessions
from tests.fixtures.mesh import Mesh, unknown

pytestmark = pytest.mark.only_rows


def reaped(mesh: Mesh) -> list[str]:
    return mesh.column("select name from agentmesh.agents where reaped_at is not null order by name")


def test_all_the_dead_of_the_session_and_nobody_else(mesh: Mesh):
    for name in ("a", "b", "living"):
        mesh.fork(mesh.root, name)
    other = mesh.fork(mesh.new_session(), "other")
    for agent in mesh.run(agents.view, mesh.session):
        if agent.name in ("a", "b"):
            mesh.kill(agent.id)
    mesh.kill(other)
    assert mesh.run(sessions.reap, mesh.session) == 2
    assert reaped(mesh) == ["a", "b"]
    assert mesh.run(sessions.reap, mesh.session) == 0


def test_one_of_the_dead(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    mesh.kill(a)
    mesh.kill(b)
    assert mesh.run(sessions.reap, mesh.session, a) == 1
    assert reaped(mesh) == ["a"]


def test_the_living_the_unknown_and_strangers_are_refused(mesh: Mesh):
    a, stranger = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.new_session(), "stranger")
    mesh.kill(stranger)
    with pytest.raises(AgentBusy, match=r"a .*alive"):
        mesh.run(sessions.reap, mesh.session, a)
    with pytest.raises(UnknownAgent):
        mesh.run(sessions.reap, mesh.session, unknown())
    with pytest.raises(UnknownAgent):
        mesh.run(sessions.reap, mesh.session, stranger)
    with pytest.raises(UnknownSession):
        mesh.run(sessions.reap, SessionId(unknown()))
    assert reaped(mesh) == []


def test_the_reaped_can_still_be_read(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    mesh.answer(a, "kept")
    mesh.kill(a)
    mesh.run(sessions.reap, mesh.session)
    assert [content["text"] for _, content in mesh.context(a)] == ["work", "kept"]
