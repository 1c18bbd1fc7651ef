"""Which sessions expire, and that erasing one takes small commits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agentmesh.domain.errors import SessionEnded, UnknownSession
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.timers import When
from agentmesh.store import agents, checks, context, sessions, timers, todos
from tests.fixtures.ageing import DAY, age
from tests.fixtures.mesh import HOST, USER, Mesh, unknown

pytestmark = pytest.mark.only_rows

AGE = 90 * DAY


def expired(mesh: Mesh) -> list[SessionId]:
    return [one.id for one in mesh.run(sessions.expired, AGE, HOST, USER)]


@pytest.fixture
def quiet(mesh: Mesh) -> AgentId:
    """The root of a session in which nothing has happened for 100 days."""
    root = mesh.new_session()
    mesh.fork(root, "child", None)
    age(mesh.conn, mesh.session_of(root))
    return root


def test_a_session_expires_when_nothing_has_happened_in_it_for_so_long(mesh: Mesh, quiet: AgentId):
    session = mesh.session_of(quiet)
    assert expired(mesh) == [session]
    assert mesh.run(sessions.begin_erasing, session, AGE)
    assert expired(mesh) == [], "somebody erases it"


def test_an_ended_session_expires_too(mesh: Mesh, quiet: AgentId):
    session = mesh.session_of(quiet)
    mesh.run(sessions.end_session, session)
    assert expired(mesh) == [], "it ended just now"
    age(mesh.conn, session)
    assert expired(mesh) == [session]


STAYS: dict[str, Callable[[Mesh, AgentId], object]] = {
    "it is pinned": lambda mesh, root: mesh.run(sessions.pin, mesh.session_of(root), pinned=True),
    "an agent runs": lambda mesh, root: mesh.conn.execute(
        "update agentmesh.agents set status = 'running' where id = %s", [root]
    ),
    "a timer is pending": lambda mesh, root: mesh.run(timers.send_later, None, root, "x", When(after=60)),
    "mail has come": lambda mesh, root: mesh.send(None, root),
    "a person left a mark": lambda mesh, root: mesh.run(context.mark, root),
    "a todo was put on the board": lambda mesh, root: mesh.run(todos.add_todo, mesh.session_of(root), None, "x"),
    "a fork was made": lambda mesh, root: mesh.fork(root, "another", None),
    "a fork was killed": lambda mesh, root: mesh.conn.execute(
        "update agentmesh.agents set status = 'dead', died_at = now() where parent_id = %s", [root]
    ),
    "it is another user's": lambda mesh, root: mesh.conn.execute("update agentmesh.sessions set os_user = 'somebody'"),
    "it is another host's": lambda mesh, root: mesh.conn.execute("update agentmesh.sessions set host = 'elsewhere'"),
}


@pytest.mark.parametrize("why", STAYS)
def test_a_session_stays_if(mesh: Mesh, quiet: AgentId, why: str):
    STAYS[why](mesh, quiet)
    assert expired(mesh) == []
    if not why.startswith("it is another"):
        assert not mesh.run(sessions.begin_erasing, mesh.session_of(quiet), AGE), "looked at again under the locks"
        assert mesh.one("select ended_at from agentmesh.sessions where id = %s", mesh.session_of(quiet)) is None


def test_a_todo_that_a_person_finishes_is_a_sign_of_life(mesh: Mesh):
    session = mesh.session_of(mesh.new_session())
    todo = mesh.run(todos.add_todo, session, None, "x")
    age(mesh.conn, session)
    assert expired(mesh) == [session]
    mesh.run(todos.finish_todo, session, None, todo)
    assert expired(mesh) == []


def test_a_session_with_a_process_stays(mesh: Mesh, quiet: AgentId):
    session = mesh.session_of(quiet)
    mesh.conn.execute(
        "insert into agentmesh.processes (session_id, id, agent_id, seq, ordinal, worker_id, command)"
        " values (%s, 1, %s, 1, 0, 1, 'x')",
        [session, quiet],
    )
    assert expired(mesh) == []
    mesh.conn.execute("update agentmesh.processes set state = 'lost', ended_at = now()")
    assert expired(mesh) == [session]


def test_pages_follow_each_other(mesh: Mesh):
    wanted = []
    for _ in range(5):
        session = mesh.session_of(mesh.new_session())
        age(mesh.conn, session)
        wanted.append(session)
    first = mesh.run(sessions.expired, AGE, HOST, USER, limit=2)
    second = mesh.run(sessions.expired, AGE, HOST, USER, first[-1], limit=2)
    third = mesh.run(sessions.expired, AGE, HOST, USER, second[-1], limit=2)
    assert [one.id for one in (*first, *second, *third)] == wanted
    assert mesh.run(sessions.expired, AGE, HOST, USER, third[-1]) == []


def test_a_session_that_is_being_erased_is_over_hidden_and_no_fault(mesh: Mesh, quiet: AgentId):
    session = mesh.session_of(quiet)
    mesh.send(None, quiet)
    age(mesh.conn, session)
    mesh.conn.execute("update agentmesh.agents set status = 'idle' where session_id = %s", [session])
    assert mesh.run(sessions.begin_erasing, session, AGE)
    assert {one.status for one in mesh.run(agents.view, session)} == {"dead"}
    assert session not in [one.id for one in mesh.run(sessions.list_sessions)]
    assert mesh.run(sessions.erase_some, session, 1) == 1
    assert [one for one in mesh.run(checks.look) if one.breaches] == []
    assert not mesh.run(sessions.begin_erasing, session, AGE), "another one's lease"
    assert mesh.run(sessions.half_erased, HOST, USER) == []
    mesh.conn.execute("update agentmesh.sessions set erasing_at = erasing_at - interval '2 min'")
    assert [one.id for one in mesh.run(sessions.half_erased, HOST, USER)] == [session]
    assert mesh.run(sessions.begin_erasing, session, AGE), "its holder has died"


def test_rows_go_in_small_commits_until_only_the_root_is_left(mesh: Mesh, quiet: AgentId):
    session = mesh.session_of(quiet)
    child = mesh.one("select id from agentmesh.agents where parent_id = %s", quiet)
    for agent in (quiet, child):
        mesh.conn.execute(
            "insert into agentmesh.transcript (agent_id, seq, kind, content, created_at)"
            " select %s, n, 'user', '{}', now() - interval '100 d' from generate_series(1, 40) n",
            [agent],
        )
    assert mesh.run(sessions.begin_erasing, session, AGE)
    counts = []
    while erased := mesh.run(sessions.erase_some, session, 30):
        counts.append(erased)
    assert max(counts) <= 30
    assert sum(counts) >= 81
    left = "select count(*) from agentmesh.{} where {} in (select id from agentmesh.agents where session_id = %s)"
    assert mesh.one(left.format("agents", "id"), session) == 1
    for table, column in (("transcript", "agent_id"), ("mail", "recipient"), ("tool_calls", "agent_id")):
        assert mesh.one(left.format(table, column), session) == 0
    mesh.run(sessions.delete_session, session)
    assert mesh.one("select count(*) from agentmesh.sessions where id = %s", session) == 0


def test_nothing_goes_of_a_session_that_is_not_marked(mesh: Mesh, quiet: AgentId):
    assert mesh.run(sessions.erase_some, mesh.session_of(quiet), 100) == 0
    assert len(mesh.run(agents.view, mesh.session_of(quiet))) == 2


def test_a_session_that_is_not_there(mesh: Mesh):
    nobody = SessionId(unknown())
    assert not mesh.run(sessions.begin_erasing, nobody, AGE)
    assert mesh.run(sessions.erase_some, nobody, 100) == 0
    with pytest.raises(UnknownSession):
        mesh.run(sessions.pin, nobody, pinned=True)


def test_a_pin_is_listed_and_can_be_taken_back(mesh: Mesh, quiet: AgentId):
    session = mesh.session_of(quiet)
    for pinned in (True, False):
        mesh.run(sessions.pin, session, pinned=pinned)
        assert {one.id: one.pinned for one in mesh.run(sessions.list_sessions)}[session] is pinned
    assert expired(mesh) == [session]


def test_a_session_that_is_being_erased_cannot_be_pinned_any_more(mesh: Mesh, quiet: AgentId):
    session = mesh.session_of(quiet)
    assert mesh.run(sessions.begin_erasing, session, AGE)
    with pytest.raises(SessionEnded, match="is being erased"):
        mesh.run(sessions.pin, session, pinned=True)
    with pytest.raises(UnknownSession):
        mesh.run(sessions.pin, SessionId(unknown()), pinned=True)


def test_each_table_that_grows_or_changes_has_thresholds_of_its_own(mesh: Mesh):
    """With the defaults a large table is vacuumed when a fifth of it is dead."""
    options: dict[str, list[str]] = dict(
        mesh.conn.execute(
            "select relname::text, coalesce(reloptions, '{}') from pg_class"
            " where relnamespace = 'agentmesh'::regnamespace and relkind = 'r'"
        ).fetchall()
    )
    written_seldom = {"alembic_version", "capabilities", "code", "images", "release", "settings"}
    written_by_moves = {"arrival_rows", "arrivals", "moves"}
    without = {name for name, found in options.items() if not any("scale_factor" in one for one in found)}
    assert without == written_seldom | written_by_moves
