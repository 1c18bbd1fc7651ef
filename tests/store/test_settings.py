"""Settings are shared by all agents that have the same, and go with the last of them: prompts tell of projects."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from agentmesh.domain.ids import AgentId
from agentmesh.store import moves, person, sessions
from tests.fixtures.ageing import DAY, age
from tests.fixtures.blocking import Stage
from tests.fixtures.mesh import HOST, MODEL, USER, Mesh

pytestmark = pytest.mark.only_rows

SECRET = "secret of a project"


def session_with(conn: psycopg.Connection, prompt: str = SECRET) -> AgentId:
    """Begin a session with this prompt, in the connection's transaction; return its root."""
    new = sessions.NewSession("/w", HOST, USER, MODEL, prompt, tools=[], permissions=[])
    return sessions.start_session(conn, new)


def prompts(mesh: Mesh) -> set[str]:
    return set(mesh.column("select system_prompt from agentmesh.settings"))


def delete(mesh: Mesh, root: AgentId) -> None:
    mesh.run(sessions.delete_session, mesh.session_of(root))


def test_the_prompt_of_a_deleted_session_is_gone(mesh: Mesh):
    others = prompts(mesh)
    root = session_with(mesh.conn)
    child = mesh.fork(root, "child", None)
    mesh.run(person.set_settings, child, system_prompt="of the child", what="x")
    assert prompts(mesh) - others == {SECRET, "of the child"}
    delete(mesh, root)
    assert prompts(mesh) == others


def test_what_another_session_has_too_stays(mesh: Mesh):
    first, second = session_with(mesh.conn), session_with(mesh.conn)
    delete(mesh, first)
    assert SECRET in prompts(mesh)
    delete(mesh, second)
    assert SECRET not in prompts(mesh)


def test_settings_that_the_last_agent_has_changed_are_gone(mesh: Mesh):
    root = session_with(mesh.conn)
    mesh.run(person.set_settings, root, system_prompt="another", what="x")
    assert SECRET not in prompts(mesh)
    mesh.run(person.set_settings, root, system_prompt="another", what="the same again")
    assert "another" in prompts(mesh)


def test_settings_that_a_running_agents_worker_may_be_about_to_read_stay(mesh: Mesh):
    root = session_with(mesh.conn)
    mesh.send(None, root)
    mesh.run(person.set_settings, root, system_prompt="another", what="x")
    assert SECRET in prompts(mesh)


def change_while_it_works(mesh: Mesh, agent: AgentId) -> None:
    """Let a person change an agent's prompt twice before its turn ends."""
    mesh.begin(agent)
    mesh.run(person.set_settings, agent, system_prompt="first", what="x")
    mesh.run(person.set_settings, agent, system_prompt="second", what="x")
    mesh.answer(agent)


def test_what_an_agent_had_while_it_worked_is_gone_with_the_session(mesh: Mesh):
    others = prompts(mesh)
    root = session_with(mesh.conn)
    change_while_it_works(mesh, root)
    assert prompts(mesh) - others == {SECRET, "first", "second"}
    delete(mesh, root)
    assert prompts(mesh) == others


def test_what_an_agent_had_while_it_worked_is_gone_when_it_is_changed_at_rest(mesh: Mesh):
    root = session_with(mesh.conn)
    change_while_it_works(mesh, root)
    mesh.run(person.set_settings, root, system_prompt="third", what="x")
    assert not {SECRET, "first", "second"} & prompts(mesh)
    assert mesh.one("select former_settings from agentmesh.agents where id = %s", root) is None


def test_a_session_that_expires_takes_its_prompts_along(mesh: Mesh):
    root = session_with(mesh.conn)
    child = mesh.fork(root, "child", None)
    change_while_it_works(mesh, child)
    mesh.run(person.set_settings, mesh.fork(child, "another"), system_prompt="of the child", what="x")
    session = mesh.session_of(root)
    age(mesh.conn, session)
    assert mesh.run(sessions.begin_erasing, session, 90 * DAY)
    while mesh.run(sessions.erase_some, session, 100):
        pass
    assert not {"of the child", "first", "second"} & prompts(mesh)
    mesh.run(sessions.delete_session, session)
    assert SECRET not in prompts(mesh)


def test_a_session_that_moves_takes_its_prompt_along(mesh: Mesh, new_database: Any, template: str):
    session = mesh.session_of(session_with(mesh.conn))
    with new_database(template) as url, psycopg.connect(url, autocommit=True) as there:
        this = moves.begin(mesh.conn, session, "there")
        moves.leave(mesh.conn, there, this, session, "here")
        assert SECRET not in prompts(mesh)
        moves.unpack(there, this)
        assert there.execute("select system_prompt from agentmesh.settings").fetchall() == [(SECRET,)]


def test_settings_that_a_session_is_just_given_stay(mesh: Mesh, stage: Stage):
    first = session_with(mesh.conn)
    second = session_with(stage.holder)
    delete(mesh, first)
    stage.holder.commit()
    assert SECRET in prompts(mesh)
    delete(mesh, second)


def test_settings_that_are_just_forgotten_are_stored_anew(mesh: Mesh, stage: Stage):
    first = session_with(mesh.conn)
    sessions.delete_session(stage.holder, mesh.session_of(first))
    begun = stage.meanwhile(session_with, blocks=True)
    stage.holder.commit()
    delete(mesh, begun.result())
    assert SECRET not in prompts(mesh)
