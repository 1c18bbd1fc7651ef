"""What a child inherits: by reference, up to a point, and nothing that the parent says later."""

from __future__ import annotations

import pytest

from agentmesh.store import steps, transcript
from tests.fixtures.mesh import Mesh

pytestmark = pytest.mark.only_rows


def texts(mesh: Mesh, agent) -> list[str]:
    return [str(content.get("text")) for _, content in mesh.context(agent)]


def test_a_fork_of_an_idle_parent_inherits_all_of_it(mesh: Mesh):
    mesh.send(None, mesh.root, "question")
    mesh.answer(mesh.root, "answer")
    child = mesh.fork(mesh.root, "child", "and now")
    mesh.begin(child)
    assert texts(mesh, child) == ["question", "answer", "and now"]


def test_what_the_parent_says_later_never_reaches_the_child(mesh: Mesh):
    mesh.send(None, mesh.root, "before")
    mesh.answer(mesh.root, "ok")
    child = mesh.fork(mesh.root, "child", "task")
    mesh.send(None, mesh.root, "after")
    mesh.answer(mesh.root, "secret")
    mesh.answer(child, "mine")
    assert texts(mesh, child) == ["before", "ok", "task", "mine"]


def test_nested_forks_compose(mesh: Mesh):
    mesh.send(None, mesh.root, "r1")
    mesh.answer(mesh.root, "r2")
    child = mesh.fork(mesh.root, "child", "c1")
    mesh.answer(child, "c2")
    grandchild = mesh.fork(child, "grandchild", "g1")
    mesh.send(None, mesh.root, "r3")
    mesh.send(None, child, "c3")
    mesh.answer(mesh.root, "r4")
    mesh.answer(child, "c4")
    mesh.answer(grandchild, "g2")
    assert texts(mesh, grandchild) == ["r1", "r2", "c1", "c2", "g1", "g2"]
    assert texts(mesh, child) == ["r1", "r2", "c1", "c2", "c3", "c4"]


def test_three_forks_of_one_step_share_the_point_before_it(mesh: Mesh):
    mesh.send(None, mesh.root, "fork three")
    calls = mesh.call(mesh.root, "fork", "fork", "fork")
    children = [mesh.fork(mesh.root, "child", f"task {n}", call) for n, call in enumerate(calls)]
    points = mesh.column("select distinct forked_at from agentmesh.agents where parent_id = %s", mesh.root)
    assert points == [1], "up to, but without, the assistant's message in progress"
    for n, child in enumerate(children):
        mesh.begin(child)
        assert texts(mesh, child) == ["fork three", f"task {n}"]


def test_a_persons_fork_of_a_parent_in_mid_step_takes_no_call_without_result(mesh: Mesh):
    mesh.send(None, mesh.root, "go")
    done, still_open = mesh.call(mesh.root, "bash", "bash")
    mesh.finish(done)
    child = mesh.fork(mesh.root, "child", "task")
    mesh.begin(child)
    assert texts(mesh, child) == ["go", "task"]
    mesh.finish(still_open)
    later = mesh.fork(mesh.root, "later")
    assert [kind for kind, _ in mesh.context(later)] == ["user", "assistant", "tool_result", "tool_result"]


def test_a_fork_in_the_second_step_inherits_the_first_one_whole(mesh: Mesh):
    first = mesh.call(mesh.root, "bash", text="first")[0]
    mesh.finish(first)
    mesh.call(mesh.root, "fork", text="second")
    child = mesh.fork(mesh.root, "child", "task", mesh.lease(mesh.root).call(4, 0))
    assert [kind for kind, _ in mesh.context(child)] == ["user", "assistant", "tool_result"]


def test_a_fork_of_a_parent_that_never_spoke_inherits_nothing(mesh: Mesh):
    child = mesh.fork(mesh.root, "child")
    assert mesh.one("select forked_at from agentmesh.agents where id = %s", child) == 0
    assert mesh.context(child) == []


def test_a_fork_of_a_parent_in_a_wait_inherits_what_came_before_that_step(mesh: Mesh):
    mesh.send(None, mesh.root, "go")
    other = mesh.fork(mesh.root, "other", "work")
    assert mesh.wait(mesh.root, other) is None
    child = mesh.fork(mesh.root, "child")
    assert texts(mesh, child) == ["go"]


def test_captures_events_and_errors_go_to_no_model_inherited_or_not(mesh: Mesh):
    mesh.send(None, mesh.root, "go")
    mesh.run(steps.fail_turn, mesh.begin(mesh.root), {"error": "no model"})
    for kind in ("capture", "command", "event", "mark"):
        mesh.conn.execute('select agentmesh.append(%s, %s, \'{"text": "hidden"}\')', [mesh.root, kind])
    child = mesh.fork(mesh.root, "child", "task")
    mesh.begin(child)
    assert texts(mesh, mesh.root) == ["go"]
    assert texts(mesh, child) == ["go", "task"]


def test_the_first_mail_introduces_the_child_and_its_parent_and_only_the_first(mesh: Mesh):
    call = mesh.call(mesh.root, "fork", "bash")[0]
    child = mesh.fork(mesh.root, "child", "task", call)
    mesh.begin(child)
    mesh.send(None, child, "more")
    mesh.begin(child)
    first, second = (content for _, content in mesh.rows(child))
    assert first["introduces"] == {
        "agent_id": str(child),
        "name": "child",
        "parent_id": str(mesh.root),
        "parent_name": "root",
    }
    assert (first["sender"], first["name"]) == (str(mesh.root), "root")
    assert "introduces" not in second
    assert all("introduces" not in content for _, content in mesh.rows(mesh.root)), "the root needs no introduction"


def test_the_inherited_rows_are_the_parents_own_not_copies(mesh: Mesh):
    mesh.send(None, mesh.root, "question")
    mesh.answer(mesh.root, "answer")
    child = mesh.fork(mesh.root, "child")
    assert mesh.one("select count(*) from agentmesh.transcript where agent_id = %s", child) == 0
    rows = mesh.run(transcript.context, child)
    assert {row.agent_id for row in rows} == {mesh.root}
    assert mesh.run(transcript.last_seq, child) == 0


def test_a_fork_from_a_long_conversation_writes_the_same_few_rows(mesh: Mesh):
    mesh.conn.execute(
        "insert into agentmesh.transcript (agent_id, seq, kind, content)"
        " select %s, n, 'user', jsonb_build_object('text', n) from generate_series(1, 10000) n",
        [mesh.root],
    )
    child = mesh.fork(mesh.root, "child", "task")
    assert mesh.one("select count(*) from agentmesh.transcript") == 10000
    mesh.begin(child)
    assert len(mesh.context(child)) == 10001
