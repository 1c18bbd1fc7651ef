"""Back in time: forks that begin at an earlier row, sessions that begin with a copy, and agents as they were."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from agentmesh.domain.errors import BadArgument, DeadAgent, EmptyMessage, SessionEnded, UnknownAgent
from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import AgentStatus
from agentmesh.engine.messages import message
from agentmesh.store import agents, context, sessions, steps, transcript, travel
from agentmesh.store.errors import translated
from agentmesh.store.travel import AgentThen, Forked
from tests.fixtures.blocking import Stage
from tests.fixtures.invariants import violations
from tests.fixtures.mesh import Mesh, unknown

pytestmark = pytest.mark.only_rows


@pytest.fixture(autouse=True)
def nothing_is_broken(mesh: Mesh) -> Iterator[None]:
    yield
    assert violations(mesh.conn) == []


def step(mesh: Mesh, agent: AgentId, *names: str, text: str = "") -> list[Any]:
    """Let the model ask for these tools, as the engine stores it; return a lease for each call."""
    lease = mesh.begin(agent)
    asked = [{"name": name, "arguments": "{}"} for name in names]
    said = {"text": text, "calls": [{"id": f"c{n}", **call} for n, call in enumerate(asked)]}
    calls = [{"call_id": f"c{n}", **call} for n, call in enumerate(asked)]
    done = mesh.run(steps.finish_step, lease, said, calls, {"input_tokens": 10, "output_tokens": 5})
    return [lease.call(done.seq, n) for n in range(len(names))]


def history(mesh: Mesh) -> AgentId:
    """Return a child with two generations of history, steps, a mark, a rewind, a summary and mail from an agent."""
    mesh.send(None, mesh.root, "root's prompt")
    mesh.answer(mesh.root, "root's answer")
    agent = mesh.fork(mesh.root, "coder", "task")
    first, second = step(mesh, agent, "bash", "read", text="look")
    mesh.finish(first)
    mesh.finish(second)
    mesh.run(context.mark, agent, "here")
    mesh.answer(agent, "first answer")
    mesh.send(mesh.root, agent, "mail from root")
    mesh.answer(agent, "second answer")
    mesh.run(context.rewind, agent)
    (write,) = step(mesh, agent, "todo_write", text="again")
    mesh.finish(write, {"todos": []})
    mesh.run(context.summarize, mesh.lease(agent), {"text": "sum", "upto": 4, "auto": True}, None, ends=False)
    mesh.answer(agent, "third answer")
    return agent


def sent(mesh: Mesh, agent: AgentId, upto: int | None = None) -> list[Any]:
    """Return the messages that an agent's model is sent at a row."""
    return [message(row) for row in mesh.run(transcript.context, agent, upto)]


def boundary(mesh: Mesh, agent: AgentId, at: int) -> int:
    return int(mesh.one("select agentmesh.step_boundary(a, %s) from agentmesh.agents a where id = %s", at, agent))


# Children that begin at an earlier row


def test_a_child_at_each_row_is_sent_what_its_parent_was_sent_there(mesh: Mesh):
    mesh.conn.execute("update agentmesh.sessions set max_children = 100, max_agents = 100")
    agent = history(mesh)
    last = mesh.run(transcript.last_seq, agent)
    points = []
    for at in range(last + 1):
        child = mesh.run(travel.fork_at, agent, "child", at)
        assert child.upto == boundary(mesh, agent, at)
        assert sent(mesh, child.id) == sent(mesh, agent, child.upto)
        assert mesh.run(agents.get, child.id).forked_at == child.upto
        points.append(child.upto)
    assert points == [0, 1, 1, 1, 4, 5, 6, 7, 8, 9, 10, 10, 12, 13, 14]
    assert last == 14
    assert violations(mesh.conn) == []


def test_what_comes_after_that_row_never_reaches_the_child(mesh: Mesh):
    mesh.send(None, mesh.root, "before")
    mesh.answer(mesh.root, "ok")
    mesh.send(None, mesh.root, "after")
    mesh.answer(mesh.root, "later")
    child = mesh.run(travel.fork_at, mesh.root, "child", 2, "go")
    mesh.begin(child.id)
    texts = [content["text"] for _, content in mesh.context(child.id)]
    assert texts == ["before", "ok", "go"]
    assert (child.name, child.session_id, child.upto) == ("child", mesh.session, 2)
    assert mesh.status(child.id) is AgentStatus.RUNNING


def test_a_fork_of_such_a_child_composes(mesh: Mesh):
    mesh.send(None, mesh.root, "one")
    mesh.answer(mesh.root, "two")
    mesh.answer(mesh.root, "three")
    child = mesh.run(travel.fork_at, mesh.root, "child", 2, "four")
    mesh.answer(child.id, "five")
    grandchild = mesh.run(travel.fork_at, child.id, "grandchild", 1)
    assert [content["text"] for _, content in mesh.context(grandchild.id)] == ["one", "two", "four"]


def test_a_row_inside_a_step_that_still_runs_gives_the_place_before_it(mesh: Mesh):
    mesh.send(None, mesh.root, "go")
    done, still_open = step(mesh, mesh.root, "bash", "bash")
    mesh.finish(done)
    assert [boundary(mesh, mesh.root, at) for at in (0, 1, 2, 3)] == [0, 1, 1, 1]
    mesh.finish(still_open)
    assert [boundary(mesh, mesh.root, at) for at in (0, 1, 2, 3, 4)] == [0, 1, 1, 1, 4]


@pytest.mark.parametrize("at", [-1, 3, None])
def test_a_row_that_is_not_there_is_refused(mesh: Mesh, at: Any):
    mesh.send(None, mesh.root, "go")
    mesh.answer(mesh.root)
    with pytest.raises(BadArgument, match=r"root \(.{8}\) has no row .*: its newest is 2"):
        mesh.run(travel.fork_session, mesh.root, at)
    if at is not None:
        with pytest.raises(BadArgument, match="its newest is 2"):
            mesh.run(travel.fork_at, mesh.root, "child", at)
    assert mesh.one("select count(*) from agentmesh.agents") == 1


def test_the_dead_and_the_ended_have_no_children_whatever_the_row(mesh: Mesh):
    child = mesh.fork(mesh.root, "child", "x")
    mesh.answer(child)
    mesh.kill(child)
    with pytest.raises(DeadAgent):
        mesh.run(travel.fork_at, child, "x", 1)
    mesh.run(sessions.end_session, mesh.session)
    with pytest.raises(SessionEnded):
        mesh.run(travel.fork_at, mesh.root, "x", 0)


def test_a_fork_of_the_past_beside_a_step_of_its_parent_waits_for_nobody(mesh: Mesh, stage: Stage):
    mesh.send(None, mesh.root, "go")
    (call,) = step(mesh, mesh.root, "bash")
    steps.finish_calls(stage.holder, call, {0: {"output": "x"}})
    inside = stage.meanwhile(lambda conn: travel.fork_at(conn, mesh.root, "inside", 2), blocks=False).result()
    stage.holder.commit()
    after = mesh.run(travel.fork_at, mesh.root, "after", 2)
    assert inside.upto == after.upto == 1, "what was a place between steps stays one"
    assert sent(mesh, inside.id) == sent(mesh, after.id)


def test_a_fork_of_the_past_and_a_kill_of_its_parent(mesh: Mesh, stage: Stage):
    a, b = mesh.fork(mesh.root, "a", "x"), mesh.fork(mesh.root, "b", "x")
    for agent in (a, b):
        mesh.answer(agent)
    first = travel.fork_at(stage.holder, a, "child", 1, "work")
    kill = stage.meanwhile(lambda conn: agents.kill(conn, a), blocks=True)
    stage.holder.commit()
    assert [ref.id for ref in kill.result()] == [a, first.id], "it dies with the tree"
    agents.kill(stage.holder, b)
    fork = stage.meanwhile(lambda conn: travel.fork_at(conn, b, "child", 1), blocks=True)
    stage.holder.commit()
    with pytest.raises(DeadAgent), translated():
        fork.result()


# Sessions that begin with a copy


def test_a_session_from_each_row_is_sent_the_same(mesh: Mesh):
    agent = history(mesh)
    mesh.kill(agent)
    for at in range(mesh.run(transcript.last_seq, agent)):
        made = mesh.run(travel.fork_session, agent, at)
        assert made.upto == boundary(mesh, agent, at)
        then = [_without_introduction(row) for row in mesh.run(transcript.context, agent, made.upto)]
        assert [message(row) for row in mesh.run(transcript.context, made.id)] == [message(row) for row in then]
    assert violations(mesh.conn) == []


def _without_introduction(row: Any) -> Any:
    content = {key: value for key, value in row.content.items() if key != "introduces"}
    return type(row)(row.agent_id, row.seq, row.kind, content)


def test_a_new_session_goes_on_from_there_and_can_be_forked_between_its_steps(mesh: Mesh):
    agent = history(mesh)
    made = mesh.run(travel.fork_session, agent, 4, "go on otherwise")
    assert (made.name, made.upto) == ("root", 4)
    assert mesh.status(made.id) is AgentStatus.RUNNING
    mesh.worker = mesh.join()
    mesh.answer(made.id, "as you like")
    kinds = [kind for kind, _ in mesh.rows(made.id)]
    assert kinds == [
        "user",
        "assistant",
        "user",
        "assistant",
        "tool_result",
        "tool_result",
        "event",
        "user",
        "assistant",
    ]
    assert [boundary(mesh, made.id, at) for at in range(8)] == [0, 1, 2, 3, 3, 3, 6, 7]
    child = mesh.run(travel.fork_at, made.id, "child", 5)
    assert child.upto == 3
    again = mesh.run(travel.fork_session, made.id, 9)
    assert sent(mesh, again.id) == sent(mesh, made.id)
    assert mesh.run(transcript.todos, again.id) == []


def test_a_copy_says_whence_it_comes_and_shows_no_mail_of_another_session(mesh: Mesh):
    agent = history(mesh)
    made = mesh.run(travel.fork_session, agent, 4)
    rows = mesh.rows(made.id)
    assert rows[0][1]["copied"] == {"agent_id": str(mesh.root), "seq": 1}
    assert not any("mail_id" in content or "introduces" in content for _, content in rows)
    event = rows[-1][1]
    assert event["agent_id"] == str(agent)
    assert event["text"].startswith("above is a copy of what coder (")
    assert mesh.status(made.id) is AgentStatus.IDLE
    assert mesh.one("select count(*) from agentmesh.mail m where m.recipient = %s", made.id) == 0


def test_each_of_the_two_sessions_can_be_deleted_alone(mesh: Mesh):
    agent = history(mesh)
    first, second = (mesh.run(travel.fork_session, agent, 4) for _ in range(2))
    before = sent(mesh, first.id)
    mesh.run(sessions.delete_session, second.session_id)
    mesh.run(sessions.end_session, mesh.session)
    mesh.run(sessions.delete_session, mesh.session)
    assert sent(mesh, first.id) == before
    mesh.session = first.session_id


def test_it_has_the_agents_place_limits_and_rights_and_asks_again(mesh: Mesh):
    rules = json.dumps([[{"effect": "deny", "tool": "bash", "pattern": "*"}]])
    mesh.conn.execute("update agentmesh.agents set permissions = %s, model = 'm/x'", [rules])
    mesh.conn.execute(
        "update agentmesh.sessions set permission_mode = 'all', max_cost_usd = 3, max_depth = 2, title = 'old',"
        " needs = '{tool x}', rules = '[{}]'"
    )
    made = mesh.run(travel.fork_session, mesh.root, 0)
    old, new = (mesh.run(agents.get, agent) for agent in (mesh.root, made.id))
    assert (new.model, new.permissions, new.settings_id) == (old.model, old.permissions, old.settings_id)
    query = (
        "select workdir, host, os_user, max_depth, max_children, max_agents, max_unread, max_tokens, max_cost_usd,"
        " deadline, needs from agentmesh.sessions where id = %s"
    )
    assert len({str(mesh.conn.execute(query, [one]).fetchone()) for one in (mesh.session, made.session_id)}) == 1
    row = mesh.conn.execute(
        "select permission_mode, rules, title from agentmesh.sessions where id = %s", [made.session_id]
    ).fetchone()
    assert row == ("ask", [], "root at row 0 of old")
    mesh.conn.execute("update agentmesh.sessions set permission_mode = 'plan'")
    planned = mesh.run(travel.fork_session, mesh.root, 0)
    assert mesh.run(sessions.get, planned.session_id).permission_mode == "plan"


def test_a_copied_wait_shows_what_it_took_and_takes_no_mail(mesh: Mesh):
    child = mesh.fork(mesh.root, "child", "work")
    (wait,) = step(mesh, mesh.root, "wait")
    mesh.send(child, mesh.root, "the report")
    mesh.wait(mesh.root, child, lease=wait)
    mesh.answer(mesh.root)
    made = mesh.run(travel.fork_session, mesh.root, mesh.run(transcript.last_seq, mesh.root))
    results = [content["result"] for kind, content in mesh.rows(made.id) if kind == "tool_result"]
    assert [result["results"][0]["message"] for result in results] == ["the report"]
    assert sent(mesh, made.id) == sent(mesh, mesh.root)


def test_a_result_whose_call_is_behind_a_summary_is_not_copied(mesh: Mesh):
    mesh.send(None, mesh.root, "go")
    for call in step(mesh, mesh.root, "bash", "bash"):
        mesh.finish(call)
    mesh.run(context.summarize, mesh.lease(mesh.root), {"text": "sum", "upto": 3}, None, ends=False)
    made = mesh.run(travel.fork_session, mesh.root, 5)
    assert [kind for kind, _ in mesh.rows(made.id)] == ["summary", "event"]


def test_a_refused_session_leaves_nothing(mesh: Mesh):
    with pytest.raises(EmptyMessage):
        mesh.run(travel.fork_session, mesh.root, 0, "  ")
    with pytest.raises(UnknownAgent):
        mesh.run(travel.fork_session, unknown(), 0)
    assert mesh.one("select count(*) from agentmesh.sessions") == 1


def test_a_session_is_forked_beside_a_step_and_a_kill_without_waiting(mesh: Mesh, stage: Stage):
    agent = history(mesh)
    then = [_without_introduction(row) for row in mesh.run(transcript.context, agent, 4)]
    agents.kill(stage.holder, agent)
    made: Forked = stage.meanwhile(lambda conn: travel.fork_session(conn, agent, 4), blocks=False).result()
    stage.holder.commit()
    assert sent(mesh, made.id) == [message(row) for row in then]


# Agents as they were


def at(mesh: Mesh, moment: datetime) -> dict[str, AgentThen]:
    return {one.view.name: one for one in mesh.run(travel.tree_at, mesh.session, moment)}


def test_the_tree_at_each_moment_is_what_it_was_then(mesh: Mesh):
    """What v_agents says after each deed is what the rows say later of that moment."""
    seen: list[tuple[datetime, dict[str, tuple[Any, ...]]]] = []

    def look() -> None:
        query = (
            "select name, status, unread::int, tool_calls::int, tokens::int,"
            " (select coalesce(max(seq), 0) from agentmesh.transcript t where t.agent_id = v.id)::int"
            " from agentmesh.v_agents v where session_id = %s and reaped_at is null"
        )
        rows = mesh.conn.execute(query, [mesh.session]).fetchall()
        seen.append((mesh.run(travel.now), {name: tuple(figures) for name, *figures in rows}))

    look()
    mesh.send(None, mesh.root, "go")
    look()
    (fork,) = step(mesh, mesh.root, "fork")
    look()
    child = mesh.fork(mesh.root, "child", "work", fork)
    look()
    (call,) = step(mesh, child, "bash")
    look()
    mesh.send(mesh.root, child, "more")
    look()
    mesh.finish(call)
    look()
    mesh.answer(child, "now the mail begins a turn")
    look()
    mesh.answer(child, "done")
    look()
    idle = mesh.fork(mesh.root, "idle")
    look()
    mesh.send(child, idle, "hello")
    look()
    mesh.interrupt(idle)
    look()
    mesh.run(steps.fail_turn, mesh.begin(mesh.root), {"error": "no model"})
    look()
    mesh.run(context.compact, child)
    look()
    mesh.claim()
    mesh.run(context.summarize, mesh.lease(child), {"text": "sum", "upto": 0}, {"input_tokens": 3}, ends=True)
    look()
    mesh.kill(child)
    look()
    mesh.run(sessions.reap, mesh.session)
    look()
    mesh.send(None, mesh.root, "again")
    look()
    for moment, then in seen:
        told = {
            name: (one.view.status, one.view.unread, one.view.tool_calls, one.view.tokens, one.last_seq)
            for name, one in at(mesh, moment).items()
            if one.view.reaped_at is None
        }
        assert told == then
    assert {status for _, then in seen for status, *_ in then.values()} == {"running", "idle", "dead"}


def test_what_it_did_then_is_told_as_far_as_rows_tell_it(mesh: Mesh):
    mesh.send(None, mesh.root, "go")
    queued = mesh.run(travel.now)
    lease = mesh.begin(mesh.root)
    thinking = mesh.run(travel.now)
    asked = [{"call_id": "c", "name": "bash", "arguments": "{}"}]
    done = mesh.run(steps.finish_step, lease, {"text": ""}, asked, {"model": "m/then"})
    calls = mesh.run(travel.now)
    mesh.finish(lease.call(done.seq, 0))
    told = [at(mesh, moment)["root"].view for moment in (queued, thinking, calls)]
    assert [one.activity for one in told] == ["queued", "thinking", "tool: bash"]
    assert told[2].model == "m/then"


def test_before_the_session_there_was_nobody(mesh: Mesh):
    assert at(mesh, mesh.run(travel.now) - timedelta(days=1)) == {}


def test_paths_and_figures_of_subtrees_are_those_of_then(mesh: Mesh):
    child = mesh.fork(mesh.root, "child", "x")
    grandchild = mesh.fork(child, "grandchild", "x")
    for agent in (mesh.root, child, grandchild):
        mesh.run(steps.finish_step, mesh.begin(agent), {"text": ""}, [], {"input_tokens": 7, "cost_usd": "0.5"})
    then = mesh.run(travel.now)
    mesh.run(steps.finish_step, mesh.begin(child), {"text": ""}, [], {"input_tokens": 7})
    now = {view.name: view for view in mesh.run(agents.view, mesh.session)}
    told = {name: one.view for name, one in at(mesh, then).items()}
    assert [told[name].path for name in told] == ["root", "root/child", "root/child/grandchild"]
    assert [told[name].tree_tokens for name in told] == [21, 14, 7]
    assert [told[name].tree_cost_usd for name in told] == [Decimal("1.5"), Decimal("1.0"), Decimal("0.5")]
    assert now["child"].tree_tokens == 21
    last = {name: one.view for name, one in at(mesh, mesh.run(travel.now)).items()}
    assert all(last[name].tree_tokens == now[name].tree_tokens and last[name].path == now[name].path for name in now)


def test_the_reader_sees_no_tree_of_the_past(mesh: Mesh):
    mesh.conn.execute("set session authorization agentmesh_reader")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        mesh.conn.execute("select from agentmesh.agents_at(%s, now())", [mesh.session])
    mesh.conn.execute("reset session authorization")
