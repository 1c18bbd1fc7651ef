"""The result of an agent's own wait is found in its transcript: for programs, commands and the MCP server."""

from __future__ import annotations

from agentmesh.app.recorded_wait import RecordedWait
from agentmesh.domain import commands
from agentmesh.store import agents, person, waits
from agentmesh.store.tx import Database
from tests.fixtures.mesh import Mesh


def test_the_result_is_found_once_it_is_recorded(db: Database, mesh: Mesh):
    child = mesh.fork(mesh.root, "child", "work")
    recorded = RecordedWait(db, mesh.root)
    assert db.run(waits.wait_begin, mesh.root, None, 60.0) is None
    assert recorded.result() is None
    mesh.send(child, mesh.root, "done")
    taken = db.run(waits.wait_take, mesh.root)
    assert taken is not None
    assert recorded.result() == taken


def test_an_earlier_wait_and_other_commands_are_left_alone(db: Database, mesh: Mesh):
    assert db.run(waits.wait_begin, mesh.root, None, 0.0) is not None
    recorded = RecordedWait(db, mesh.root)
    db.run(person.note, mesh.root, commands.row_content("send", ["x", "y"], "Sent."))
    assert recorded.result() is None


def test_the_death_of_the_waiting_agent_is_no_result(db: Database, mesh: Mesh):
    child = mesh.fork(mesh.root, "child")
    recorded = RecordedWait(db, child)
    assert db.run(waits.wait_begin, child, None, 60.0) is None
    db.run(agents.kill, child)
    assert recorded.result() is None
    assert recorded.was_killed
