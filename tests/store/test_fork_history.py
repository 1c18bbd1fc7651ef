"""What a child inherits: by reference, up to a point, and nothing that the parent says later."""

from __future__ import annotations

import pytest

from agentmesh.domain.shape import Shape
from agentmesh.store import agents, steps, transcript
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


def talk(mesh: Mesh, agent, *turns: str) -> None:
    for turn in turns:
        mesh.send(None, agent, f"{turn}?")
        mesh.answer(agent, f"{turn}!")


def last(mesh: Mesh, parent, turns: int, name: str = "child"):
    return mesh.run(agents.fork, parent, name, shape=Shape(context=f"last {turns}"))


def test_a_fork_can_inherit_only_the_last_turns(mesh: Mesh):
    talk(mesh, mesh.root, "a", "b", "c")
    one, two, three, many = (last(mesh, mesh.root, n, f"child{n}") for n in (1, 2, 3, 999_999))
    assert texts(mesh, one) == ["c?", "c!"]
    assert texts(mesh, two) == ["b?", "b!", "c?", "c!"]
    assert texts(mesh, three) == texts(mesh, many) == texts(mesh, mesh.root)
    assert mesh.rows(three) == mesh.rows(many) == []
    assert [content["event"] for _, content in mesh.rows(one)] == ["inherits"]
    cost = "it inherits only the last turns: only the system prompt and the tools are cached"
    assert mesh.run(agents.fork_cache, one) == cost
    assert mesh.run(agents.fork_cache, three) is None
    talk(mesh, mesh.root, "secret")
    talk(mesh, one, "mine")
    assert texts(mesh, one) == ["c?", "c!", "mine?", "mine!"]


def test_the_last_turns_may_begin_in_an_older_generation_and_grandchildren_inherit_no_more(mesh: Mesh):
    talk(mesh, mesh.root, "a", "b")
    middle = mesh.fork(mesh.root, "middle")
    talk(mesh, middle, "c")
    child = last(mesh, middle, 2)
    assert texts(mesh, child) == ["b?", "b!", "c?", "c!"]
    talk(mesh, child, "d")
    assert texts(mesh, mesh.fork(child, "whole")) == ["b?", "b!", "c?", "c!", "d?", "d!"]
    assert texts(mesh, last(mesh, child, 3, "three")) == ["b?", "b!", "c?", "c!", "d?", "d!"]
    assert texts(mesh, last(mesh, child, 2, "two")) == ["c?", "c!", "d?", "d!"]
    seen = mesh.column("select text from agentmesh.v_transcript where agent_id = %s and inherited order by seq", child)
    assert "a?" not in seen


def test_a_turn_is_never_torn_and_one_that_goes_on_counts(mesh: Mesh):
    talk(mesh, mesh.root, "a")
    mesh.send(None, mesh.root, "b?")
    mesh.begin(mesh.root)
    (first,) = mesh.call(mesh.root, "bash")
    mesh.finish(first)
    mesh.send(None, mesh.root, "in the middle of b")
    mesh.begin(mesh.root)
    mesh.call(mesh.root, "bash")
    running = last(mesh, mesh.root, 1, "running")
    kinds = [kind for kind, _ in mesh.context(running)]
    assert kinds == ["user", "assistant", "tool_result", "user"]
    assert texts(mesh, running)[0] == "b?"
    assert texts(mesh, last(mesh, mesh.root, 2, "both")) == texts(mesh, mesh.fork(mesh.root, "same"))


def test_turns_that_an_interrupt_ended_and_messages_read_together_count_as_one_each(mesh: Mesh):
    mesh.send(None, mesh.root, "a?")
    mesh.begin(mesh.root)
    mesh.finish(*mesh.call(mesh.root, "bash"))
    mesh.interrupt(mesh.root)
    mesh.run(steps.stop_turn, mesh.lease(mesh.root))
    assert mesh.status(mesh.root) == "idle"
    mesh.send(None, mesh.root, "b?")
    mesh.send(None, mesh.root, "b too?")
    mesh.answer(mesh.root, "b!")
    assert texts(mesh, last(mesh, mesh.root, 1, "one")) == ["b?", "b too?", "b!"]
    assert texts(mesh, last(mesh, mesh.root, 2, "two")) == texts(mesh, mesh.root)


def test_a_correction_begins_no_turn(mesh: Mesh):
    talk(mesh, mesh.root, "a")
    mesh.send(None, mesh.root, "b?")
    corrected = {"text": "{", "correction": {"reason": "call", "text": "Call the tool now."}}
    mesh.run(steps.finish_step, mesh.begin(mesh.root), corrected, [], {"input_tokens": 1, "output_tokens": 1})
    mesh.answer(mesh.root, "b!")
    assert texts(mesh, last(mesh, mesh.root, 1, "one")) == ["b?", "{", "Call the tool now.", "b!"]


def test_what_a_fork_did_not_inherit_comes_back_by_no_rewind(mesh: Mesh):
    talk(mesh, mesh.root, "a", "b")
    middle = mesh.fork(mesh.root, "middle")
    talk(mesh, middle, "c")
    for name, context, kept in (("one", "last 1", ["c?", "c!"]), ("bare", "none", [])):
        child = mesh.run(agents.fork, middle, name, shape=Shape(context=context))
        talk(mesh, child, "d")
        mesh.conn.execute("select agentmesh.rewind_to(%s, 0)", [child])
        assert texts(mesh, child) == kept
        inherited = (
            "select text from agentmesh.v_transcript where agent_id = %s and inherited order by generation desc, seq"
        )
        assert mesh.column(inherited, child) == kept


def test_a_summary_of_older_turns_is_not_inherited_with_the_last_ones(mesh: Mesh):
    talk(mesh, mesh.root, "a", "b", "c")
    upto = mesh.one(
        "select min(seq) - 1 from agentmesh.transcript where agent_id = %s and content ->> 'text' = 'b?'", mesh.root
    )
    mesh.conn.execute(
        "select agentmesh.append(%s, 'summary', jsonb_build_object('text', 'sum', 'upto', %s::bigint))",
        [mesh.root, upto],
    )
    talk(mesh, mesh.root, "d")
    assert texts(mesh, mesh.root) == ["sum", "b?", "b!", "c?", "c!", "d?", "d!"]
    assert texts(mesh, last(mesh, mesh.root, 2, "two")) == ["c?", "c!", "d?", "d!"]
    assert texts(mesh, last(mesh, mesh.root, 3, "three")) == ["b?", "b!", "c?", "c!", "d?", "d!"]
    assert texts(mesh, last(mesh, mesh.root, 4, "whole")) == texts(mesh, mesh.root)


def test_of_an_empty_conversation_the_last_turns_are_all(mesh: Mesh):
    child = last(mesh, mesh.root, 3)
    assert mesh.context(child) == []
    assert mesh.rows(child) == []
