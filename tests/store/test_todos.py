"""todos: one board for a session, whose items have one owner at most, also when claims race and owners die."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from agentmesh.domain.errors import (
    BadArgument,
    DeadAgent,
    Fenced,
    OtherSession,
    TodoNotReady,
    TodoTaken,
    UnknownTodo,
)
from agentmesh.domain.ids import AgentId
from agentmesh.store import sessions, todos
from agentmesh.store.call import Lease
from agentmesh.store.errors import translated
from tests.fixtures.mesh import Mesh

pytestmark = pytest.mark.only_rows


def add(mesh: Mesh, content: str = "x", *after: int) -> int:
    return mesh.run(todos.add_todo, mesh.session, None, content, after)


def claim(mesh: Mesh, agent: AgentId, todo: int | None = None) -> int | None:
    return mesh.run(todos.claim_todo, mesh.session, agent, todo)


def board(mesh: Mesh) -> list[tuple[int, str, str | None]]:
    return [(one.id, one.status, one.owner_name) for one in mesh.run(todos.board, mesh.session)]


def test_the_oldest_ready_one_is_claimed_and_order_is_kept(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    first = add(mesh, "build")
    second = add(mesh, "test", first, first)
    assert claim(mesh, a) == first
    assert claim(mesh, b) is None
    with pytest.raises(TodoNotReady, match=f"todo {second} is not ready: {first} must be done first"):
        claim(mesh, b, second)
    mesh.run(todos.finish_todo, mesh.session, a, first, "in build/")
    assert claim(mesh, b) == second
    assert board(mesh) == [(second, "claimed", "b"), (first, "done", "a")]
    assert mesh.run(todos.board, mesh.session)[1].note == "in build/"


def test_another_ones_is_refused_with_its_owner_and_ones_own_stays(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    todo = add(mesh)
    assert (claim(mesh, a, todo), claim(mesh, a, todo)) == (todo, todo)
    for refused in (todos.claim_todo, todos.finish_todo, todos.release_todo):
        with pytest.raises(TodoTaken, match=rf"^a \(\w{{8}}\) has todo {todo}$"):
            mesh.run(refused, mesh.session, b, todo)
    mesh.run(todos.release_todo, mesh.session, a, todo)
    assert claim(mesh, b) == todo


def test_death_frees_what_was_claimed_in_its_own_commit_and_keeps_what_is_done(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    below = mesh.fork(a, "below")
    done, one, other = add(mesh), add(mesh), add(mesh)
    mesh.run(todos.finish_todo, mesh.session, a, done)
    assert (claim(mesh, a), claim(mesh, below)) == (one, other)
    mesh.kill(a)
    assert board(mesh) == [(one, "open", None), (other, "open", None), (done, "done", "a")]
    assert mesh.one(
        "select count(distinct x) = 1 from (select xmin::text x from agentmesh.todos where status = 'open'"
        " union all select xmin::text from agentmesh.agents where status = 'dead') s"
    )
    with pytest.raises(DeadAgent):
        claim(mesh, a)


def test_of_many_claims_at_once_each_todo_has_one_winner(mesh: Mesh):
    agents = [mesh.fork(mesh.root, f"a{n}") for n in range(6)]
    wanted = {add(mesh) for _ in range(4)}

    def take(agent: AgentId) -> int | None:
        with psycopg.connect(mesh.url, autocommit=True) as conn, translated():
            return todos.claim_todo(conn, mesh.session, agent)

    with ThreadPoolExecutor(6) as pool:
        taken = list(pool.map(take, agents))
    assert sorted(filter(None, taken)) == sorted(wanted)
    assert taken.count(None) == 2


def test_the_second_of_two_claims_waits_and_is_told_who_has_it(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b")
    todo = add(mesh)
    with psycopg.connect(mesh.url) as first, psycopg.connect(mesh.url, autocommit=True) as second:
        todos.claim_todo(first, mesh.session, a, todo)
        pid = second.info.backend_pid

        def late() -> int | None:
            with translated():
                return todos.claim_todo(second, mesh.session, b, todo)

        with ThreadPoolExecutor(1) as pool:
            found = pool.submit(late)
            blocked = "select cardinality(pg_blocking_pids(%s)) > 0"
            while not mesh.one(blocked, pid):
                assert not found.done()
            first.commit()
            with pytest.raises(TodoTaken, match=r"^a \(\w{8}\) has todo"):
                found.result()
    assert board(mesh) == [(todo, "claimed", "a")]


def test_a_claim_races_with_its_agents_death(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    add(mesh)
    with psycopg.connect(mesh.url) as dying, psycopg.connect(mesh.url, autocommit=True) as claiming:
        dying.execute("select agentmesh.kill(%s)", [a])
        pid = claiming.info.backend_pid

        def late() -> int | None:
            with translated():
                return todos.claim_todo(claiming, mesh.session, a)

        with ThreadPoolExecutor(1) as pool:
            found = pool.submit(late)
            while not mesh.one("select cardinality(pg_blocking_pids(%s)) > 0", pid):
                assert not found.done()
            dying.commit()
            with pytest.raises(DeadAgent):
                found.result()
    assert [status for _, status, _ in board(mesh)] == ["open"]


def test_a_person_may_end_and_release_any(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    one, other = add(mesh), add(mesh)
    claim(mesh, a, one)
    mesh.run(todos.release_todo, mesh.session, None, one)
    mesh.run(todos.finish_todo, mesh.session, None, other)
    mesh.run(todos.finish_todo, mesh.session, None, other)
    assert board(mesh) == [(one, "open", None), (other, "done", None)]


def test_a_call_gets_its_result_in_the_commit_of_the_change(mesh: Mesh):
    (call,) = mesh.call(mesh.root, "todo")
    mesh.run(todos.add_todo, mesh.session, mesh.root, "build \u2713", (), call)
    (result,) = mesh.column(
        "select content -> 'result' from agentmesh.transcript where agent_id = %s and content ? 'result'",
        mesh.root,
    )
    assert result["added"]["content"] == "build \u2713"
    assert (result["added"]["status"], result["added"]["ready"]) == ("open", True)


def test_what_is_wrong_is_refused_and_changes_nothing(mesh: Mesh):
    stranger = mesh.new_session()
    for content in ("", " \n", "x" * 4001):
        with pytest.raises(BadArgument):
            add(mesh, content)
    with pytest.raises(UnknownTodo):
        add(mesh, "x", 999)
    theirs = mesh.run(todos.add_todo, mesh.session_of(stranger), None, "x")
    with pytest.raises(UnknownTodo):
        add(mesh, "x", theirs)
    with pytest.raises(UnknownTodo):
        claim(mesh, mesh.root, theirs)
    with pytest.raises(OtherSession):
        mesh.run(todos.claim_todo, mesh.session, stranger)
    with pytest.raises(Fenced):
        mesh.run(todos.claim_todo, mesh.session, mesh.root, None, Lease(mesh.root, mesh.worker, 99, 1, 0))
    assert board(mesh) == []


@pytest.mark.parametrize(
    "change", ["status = 'claimed'", "owner = '{root}'", "status = 'done'", "note = 'x'", "status = 'later'"]
)
def test_no_illegal_state_can_be_stored(mesh: Mesh, change: str):
    add(mesh)
    with pytest.raises(psycopg.errors.CheckViolation):
        mesh.conn.execute(f"update agentmesh.todos set {change.format(root=mesh.root)}")


def test_a_deleted_session_takes_its_board_along(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    add(mesh)
    claim(mesh, a)
    mesh.run(sessions.end_session, mesh.session)
    assert [status for _, status, _ in board(mesh)] == ["open"]
    mesh.run(sessions.delete_session, mesh.session)
    assert mesh.one("select count(*) from agentmesh.todos") == 0
