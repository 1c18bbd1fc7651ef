"""What broke elsewhere and no other test of ours looks at (docs/explanation/reliability.md, "What broke elsewhere")."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from agentmesh.domain.errors import ChildrenLimit, DepthLimit
from agentmesh.domain.ids import AgentId
from agentmesh.store import agents, board, person, requests, workers
from tests.fixtures.mesh import Mesh

pytestmark = pytest.mark.only_rows


def test_a_turn_that_mail_began_tells_what_the_first_told(mesh: Mesh, database_url: str):
    a = mesh.fork(mesh.root, "a", "work")
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute(f'listen "session_event_{mesh.session}"')

        def turn() -> list[str]:
            mesh.finish(mesh.call(a, "bash")[0])
            mesh.answer(a)
            conn.execute("select")
            return [each.payload for each in conn.notifies(timeout=0)]

        first = turn()
        mesh.send(None, a, "more work")
        assert turn() == [f"mail {a}", *first], "and that there is mail"


def test_after_a_crash_the_model_is_told_of_the_agents_that_a_person_sees(mesh: Mesh):
    for name, prompt in (("busy", "work"), ("idle", None), ("waiting", "work"), ("dead", "work")):
        mesh.fork(mesh.root, name, prompt)
    mesh.claim()
    mesh.kill(mesh.run(agents.resolve, mesh.session, "dead").id)
    mesh.run(workers.release, mesh.worker)
    told = {
        (each["agent_id"], each["name"], each["status"])
        for each in mesh.run(agents.list_agents, mesh.session, mesh.root, 99)
    }
    seen = {
        (str(each.id), each.name, each.status.value)
        for each in mesh.run(agents.view, mesh.session)
        if each.status.value != "dead"
    }
    assert told == seen


def test_a_hundred_children_that_ended_take_no_room(mesh: Mesh):
    mesh.conn.execute("update agentmesh.sessions set max_children = 2, max_agents = 3")
    for n in range(100):
        mesh.kill(mesh.fork(mesh.root, f"c{n}", "work"))
    mesh.fork(mesh.root, "a", "work")
    mesh.fork(mesh.root, "b", "work")
    with pytest.raises(ChildrenLimit, match="2 living children") as refused:
        mesh.fork(mesh.root, "c", "work")
    assert "Do not retry" in refused.value.hint


WAYS: dict[str, Callable[[Mesh, AgentId], object]] = {
    "fork, a person": lambda mesh, a: mesh.fork(a, "deeper"),
    "fork, a tool": lambda mesh, a: mesh.fork(a, "deeper", "work", mesh.call(a, "fork")[0]),
    "fork of what was captured": lambda mesh, a: mesh.run(person.fork_captured, a),
    "task": lambda mesh, a: mesh.task(a),
}


@pytest.mark.parametrize("way", WAYS)
def test_depth_is_counted_whichever_way_an_agent_is_made(mesh: Mesh, way: str):
    mesh.conn.execute("update agentmesh.sessions set max_depth = 1")
    child = mesh.fork(mesh.root, "child", "work")
    with pytest.raises(DepthLimit, match="depth 1"):
        WAYS[way](mesh, child)
    assert mesh.one("select count(*) from agentmesh.agents where depth > 1") == 0


def test_an_answer_wakes_only_who_asked(mesh: Mesh, database_url: str):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    first, second = mesh.ask(a), mesh.ask(b)
    with psycopg.connect(database_url, autocommit=True) as conn:
        for agent in (mesh.root, a, b):
            conn.execute(f'listen "agent_event_{agent}"')
        mesh.run(requests.answer, first, {"decision": "once"}, "tester")
        conn.execute("select")
        assert [(each.channel, each.payload) for each in conn.notifies(timeout=0)] == [(f"agent_event_{a}", "answer")]
    assert [each.id for each in mesh.run(requests.pending, mesh.session)] == [second]
    asking = mesh.column("select agent_id from agentmesh.tool_calls where status = 'asking'")
    assert asking == [b]


def test_unread_mail_is_the_same_wherever_one_looks(mesh: Mesh):
    a, idle = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "idle")
    mesh.begin(a)
    for sender, body in ((None, "one"), (mesh.root, "two"), (idle, "three")):
        mesh.send(sender, a, body)
    mesh.run(person.take_back, mesh.send(None, a, "four"))

    def counts() -> set[int]:
        view = {each.id: each.unread for each in mesh.run(agents.view, mesh.session)}
        screen = {each.view.id: each.view.unread for each in mesh.run(board.agents, mesh.session)}
        listed = mesh.one("select count(*) from agentmesh.v_mail where recipient = %s and state = 'unread'", a)
        return {view[a], screen[a], listed, len(mesh.unread(a))}

    assert counts() == {3}
    assert [each.body for each in mesh.run(board.pending, [a])] == ["one"]
    mesh.begin(a)
    assert counts() == {2}, "the user's is read in the middle of a turn"
    mesh.answer(a)
    assert counts() == {0}
