"""The views: what they say, and that their reader can read them all and change nothing."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from agentmesh.domain.states import AgentStatus
from agentmesh.store import agents, sessions, status, steps, workers
from tests.fixtures.mesh import HOST, Mesh

pytestmark = pytest.mark.only_rows


@pytest.fixture
def reader(database_url: str) -> Iterator[psycopg.Connection]:
    """A connection with the rights of the role agentmesh_reader and no others."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("set session authorization agentmesh_reader")
        yield connection


@pytest.fixture
def busy(mesh: Mesh) -> Mesh:
    """A mesh with something in every view."""
    a = mesh.fork(mesh.root, "a", "work")
    b = mesh.fork(a, "b", "work")
    usage = {"input_tokens": 10, "output_tokens": 5, "cost_usd": 0.5}
    mesh.run(
        steps.finish_step, mesh.begin(b), {"text": "hi"}, [{"call_id": "1", "name": "bash", "arguments": "{}"}], usage
    )
    mesh.wait(mesh.root, a)
    mesh.send(b, mesh.root, "news")
    mesh.fork(mesh.root, "queued", "work")
    mesh.run(workers.release, mesh.worker)
    return mesh


FULL = {"v_agents", "v_mail", "v_transcript", "v_waits", "v_cost", "v_budgets", "v_timeline", "v_stuck", "v_sessions"}
CHANGING = {"v_stuck", "v_limits"}
"""They count seconds."""


def test_the_reader_reads_every_view(busy: Mesh, reader: psycopg.Connection):
    views = busy.column("select viewname from pg_views where schemaname = 'agentmesh' and starts_with(viewname, 'v_')")
    assert set(views) > FULL
    for view in views:
        rows = reader.execute(f"select * from agentmesh.{view}".encode()).fetchall()
        assert rows or view not in FULL
        assert view in CHANGING or rows == busy.conn.execute(f"select * from agentmesh.{view}".encode()).fetchall()


@pytest.mark.parametrize(
    "statement",
    [
        "select * from agentmesh.agents",
        "select * from agentmesh.mail for update",
        "update agentmesh.agents set status = 'idle'",
        "delete from agentmesh.mail",
        "select agentmesh.send(null, null, 'x')",
        "select * from agentmesh.kill(null)",
        "select agentmesh.fork(null, 'x')",
        "select agentmesh.append(null, 'user', '{}')",
        "select agentmesh.claim(1, 1)",
        "truncate agentmesh.mail",
        "create table agentmesh.x ()",
    ],
)
def test_the_reader_can_do_nothing_else(busy: Mesh, reader: psycopg.Connection, statement: str):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        reader.execute(statement)


def test_v_agents_has_path_activity_unread_and_the_figures_of_the_subtree(busy: Mesh):
    rows = {view.name: view for view in busy.run(agents.view, busy.session)}
    assert {name: view.path for name, view in rows.items()} == {
        "root": "root",
        "a": "root/a",
        "b": "root/a/b",
        "queued": "root/queued",
    }
    assert (rows["root"].activity, rows["queued"].activity) == ("waiting", "queued")
    assert (rows["root"].unread, rows["a"].unread, rows["queued"].unread) == (1, 1, 1)
    assert (rows["b"].tokens, rows["a"].tokens, rows["a"].tree_tokens, rows["root"].tree_tokens) == (15, 0, 15, 15)
    assert float(rows["root"].tree_cost_usd or 0) == 0.5


def test_activity_is_what_it_does(mesh: Mesh):
    def activity(agent) -> str:
        return str(mesh.one("select activity from agentmesh.v_agents where id = %s", agent))

    a = mesh.fork(mesh.root, "a", "work")
    assert activity(a) == "queued"
    mesh.begin(a)
    mesh.run(status.set_activities, {a: "tool: bash"})
    assert activity(a) == "tool: bash"
    mesh.run(status.set_activities, {a: "ä" * 1000})
    assert activity(a) == "ä" * 200, "as many bytes as the table takes"
    mesh.run(status.set_activities, {a: f"paused 4 s: {'x' * 200}: why"})
    assert activity(a).endswith(": why")
    mesh.interrupt(a)
    assert activity(a) == "stopping"
    mesh.run(steps.stop_turn, mesh.lease(a))
    assert activity(a) == "interrupted"
    mesh.kill(a)
    mesh.run(sessions.reap, mesh.session)
    assert activity(a) == "reaped"


def test_cost_is_null_where_no_price_is_known(mesh: Mesh):
    mesh.run(steps.finish_step, mesh.begin(mesh.root), {"text": ""}, [], {"input_tokens": 5})
    (view,) = mesh.run(agents.view, mesh.session)
    assert view.cost_usd is None
    assert view.tree_cost_usd is None
    cost = mesh.conn.execute("select calls, tokens, cost_usd, unpriced_calls from agentmesh.v_cost").fetchall()
    assert cost == [(1, 5, None, 1)]


def test_v_transcript_holds_what_is_inherited(mesh: Mesh):
    mesh.send(None, mesh.root, "question")
    mesh.answer(mesh.root, "answer")
    child = mesh.fork(mesh.root, "child", "task")
    mesh.begin(child)
    mesh.send(None, mesh.root, "later")
    mesh.answer(mesh.root)
    rows = mesh.conn.execute(
        "select inherited, kind, text from agentmesh.v_transcript where agent_id = %s order by generation desc, seq",
        [child],
    ).fetchall()
    assert rows == [(True, "user", "question"), (True, "assistant", "answer"), (False, "user", "task")]


def test_v_waits_is_the_graph(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    mesh.wait(mesh.root, a, b)
    mesh.send(b, mesh.root)
    rows = mesh.conn.execute(
        "select waiter_name, target_name, target_status, received from agentmesh.v_waits order by target_name"
    ).fetchall()
    assert rows == [("root", "a", "running", False), ("root", "b", "running", True)]


def test_v_mail_says_whether_it_was_read(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    mesh.send(None, a, "read")
    mesh.begin(a)
    mesh.send(mesh.root, a, "unread")
    rows = mesh.conn.execute("select sender_name, recipient_name, state from agentmesh.v_mail order by id").fetchall()
    assert rows == [("user", "a", "read"), ("root", "a", "unread")]


def test_v_timeline_says_who_did_what(busy: Mesh):
    what = {(name, what) for name, what in busy.conn.execute("select name, what from agentmesh.v_timeline")}
    assert {("b", "send"), ("b", "model"), ("b", "user"), ("b", "assistant"), ("user", "send")} <= what


def test_17_10_v_sessions_has_title_directory_and_figures(busy: Mesh):
    empty = busy.new_session()
    busy.conn.execute("update agentmesh.sessions set title = 'mine' where id = %s", [busy.session])
    found = busy.conn.execute(
        "select s.session_id, s.title, s.workdir, s.host, s.agents, s.running, s.tokens, s.cost_usd, s.ended_at"
        " from agentmesh.v_sessions s order by s.created_at"
    ).fetchall()
    first, second = found
    assert first[:7] == (busy.session, "mine", "/tmp", HOST, 4, 4, 15)
    assert float(first[7]) == 0.5
    assert (second[0], second[4:7]) == (busy.session_of(empty), (1, 0, 0))
    busy.run(sessions.end_session, busy.session)
    assert busy.one("select ended_at is not null and running = 0 from agentmesh.v_sessions where title = 'mine'")


def test_v_stuck_is_empty_when_all_is_well(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    mesh.wait(mesh.root, a)
    assert mesh.column("select problem from agentmesh.v_stuck") == []


def test_v_stuck_names_what_looks_wrong(mesh: Mesh):
    def problems() -> set[tuple[str, str]]:
        return {(name, problem) for name, problem in mesh.conn.execute("select name, problem from agentmesh.v_stuck")}

    a = mesh.fork(mesh.root, "a", "work")
    mesh.wait(mesh.root)
    mesh.wait(a)
    assert problems() == {("root", "all wait for anyone"), ("a", "all wait for anyone")}
    mesh.conn.execute("update agentmesh.wait set deadline = clock_timestamp() - interval '6 s'")
    assert ("a", "wait overdue") in problems()
    mesh.conn.execute("update agentmesh.workers set seen_at = clock_timestamp() - interval '20 s'")
    assert ("a", "worker silent") in problems()
    mesh.conn.execute("select agentmesh.release_worker(%s)", [mesh.worker])
    assert ("a", "no worker") in problems()


def test_a_model_that_no_worker_serves_is_said(mesh: Mesh):
    mesh.conn.execute("update agentmesh.agents set model = 'openai/x'")
    mesh.send(None, mesh.root)
    (why,) = mesh.column("select why from agentmesh.v_stuck where problem = 'no worker'")
    assert "openai/x" in why
    assert mesh.status(mesh.root) is AgentStatus.RUNNING


def test_list_agents_holds_the_living(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    mesh.kill(mesh.fork(mesh.root, "dead"))
    assert mesh.run(agents.list_agents, mesh.session, mesh.root, 9) == [
        {"agent_id": str(mesh.root), "name": "root", "parent": None, "status": "idle", "activity": "", "unread": 0},
        {"agent_id": str(a), "name": "a", "parent": "root", "status": "running", "activity": "queued", "unread": 1},
    ]
    assert mesh.run(agents.busy, mesh.session) == 1


def problems(mesh: Mesh) -> set[tuple[str, str]]:
    return {(name, problem) for name, problem in mesh.conn.execute("select name, problem from agentmesh.v_stuck")}


def test_v_stuck_names_agents_that_a_worker_with_room_does_not_take(mesh: Mesh):
    mesh.fork(mesh.root, "a", "work")
    mesh.conn.execute("update agentmesh.agents set queued_at = clock_timestamp() - interval '31 s' where name = 'a'")
    assert problems(mesh) == {("a", "not claimed")}
    mesh.conn.execute("update agentmesh.workers set concurrency = 1")
    assert mesh.claim(0) == []
    mesh.fork(mesh.root, "b", "work")
    mesh.conn.execute("update agentmesh.agents set queued_at = '2020-01-01' where name = 'b'")
    assert mesh.claim(1) == [mesh.one("select id from agentmesh.agents where name = 'b'")]
    assert ("a", "not claimed") not in problems(mesh), "its worker is busy: it waits for its turn"


def test_v_stuck_names_agents_of_which_nothing_is_heard_although_their_worker_beats(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    mesh.begin(a)
    assert problems(mesh) == set()
    mesh.conn.execute("update agentmesh.workers set started_at = '2020-01-01'")
    mesh.conn.execute("update agentmesh.agents set queued_at = '2020-01-01'")
    mesh.conn.execute("update agentmesh.transcript set created_at = '2020-01-01'")
    assert problems(mesh) == {("a", "no sign of life")}
    mesh.conn.execute("insert into agentmesh.activity (agent_id, activity) values (%s, 'thinking')", [a])
    assert problems(mesh) == set()
