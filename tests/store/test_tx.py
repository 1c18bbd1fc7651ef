from __future__ import annotations

import queue
import threading

import pytest
from psycopg.pq import TransactionStatus

from agentmesh.domain.errors import DatabaseError, DatabaseUnreachable
from agentmesh.store import tx
from agentmesh.store.pool import connect, open_pool
from agentmesh.store.tx import Database
from tests.fixtures.engine import until


@pytest.fixture
def counter(conn):
    """A table of one row, in which a test sees how often something was done."""
    conn.execute("create table public.counter as select 0 as n")
    return lambda: conn.execute("select n from public.counter").fetchone()[0]


def count(connection):
    connection.execute("update public.counter set n = n + 1")


class Failing:
    """A store function that raises the errors in turn before it works."""

    def __init__(self, *states, message="x"):
        self.states = list(states)
        self.message = message
        self.calls = 0

    def __call__(self, connection):
        self.calls += 1
        if self.states:
            using = f"errcode = '{self.states.pop(0)}', message = '{self.message}'"
            connection.execute(f"do $$ begin raise exception using {using}; end $$")
        return "done"


def test_a_call_gets_its_arguments_and_returns_its_result(db):
    def add(connection, a, *, b):
        return connection.execute("select %s::int + %s::int", [a, b]).fetchone()[0]

    assert db.run(add, 40, b=2) == 42


def test_each_statement_is_a_commit_of_its_own(db, counter):
    def count_and_fail(connection):
        count(connection)
        connection.execute("select 1 / 0")

    with pytest.raises(DatabaseError, match="division by zero"):
        db.run(count_and_fail)
    assert counter() == 1


@pytest.mark.parametrize("state", ["40P01", "40001", "55P03"])
def test_what_postgresql_undid_for_others_sake_is_repeated(db, state):
    function = Failing(state, state)
    assert db.run(function) == "done"
    assert function.calls == 3


def test_two_updates_that_met_in_one_multixact_are_made_again(db):
    said = "new multixact has more than one updating member: 0 3[4364 (nokeyupd), 4367 (keysh), 4368 (nokeyupd)]"
    function = Failing("XX000", "XX000", message=said)
    assert db.run(function) == "done"
    assert function.calls == 3


def test_repeating_ends(db):
    function = Failing(*["40P01"] * 100)
    with pytest.raises(DatabaseError) as caught:
        db.run(function)
    assert "try once more" in caught.value.hint
    assert 1 < function.calls < 20


@pytest.mark.parametrize("state", ["23505", "XX000"])
def test_any_other_failure_is_not_repeated(db, state):
    function = Failing(state)
    with pytest.raises(DatabaseError):
        db.run(function)
    assert function.calls == 1


def test_two_calls_that_deadlock_both_succeed(db, conn):
    conn.execute("create table public.pair as select k, 0 as n from generate_series(1, 2) as k")
    both_hold_one = threading.Barrier(2)
    tried = set()

    def lock_both(connection, first, second):
        with connection.transaction():
            connection.execute("update public.pair set n = n + 1 where k = %s", [first])
            if first not in tried:
                tried.add(first)
                both_hold_one.wait(20)
            connection.execute("update public.pair set n = n + 1 where k = %s", [second])

    threads = [threading.Thread(target=db.run, args=(lock_both, *order)) for order in ((1, 2), (2, 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert conn.execute("select n from public.pair").fetchall() == [(2,), (2,)]


def end_own_session(connection):
    connection.execute("select pg_terminate_backend(pg_backend_pid())")


def test_after_a_lost_connection_the_outcome_is_unknown_and_nothing_is_repeated(db, counter):
    def count_and_lose(connection):
        count(connection)
        end_own_session(connection)

    with pytest.raises(DatabaseUnreachable, match="Whether the last change was made is unknown"):
        db.run(count_and_lose)
    assert counter() == 1


def test_an_idempotent_call_is_repeated_after_a_lost_connection(db):
    attempts = []

    def lose_once(connection):
        attempts.append(connection.info.backend_pid)
        if len(attempts) == 1:
            end_own_session(connection)
        return "done"

    assert db.run(lose_once, idempotent=True) == "done"
    assert len(set(attempts)) == 2


def test_connections_that_died_while_idle_are_replaced_before_a_call_gets_one(database_url, conn, counter):
    with Database(database_url, role="test", pool_size=4) as db:
        at_once = threading.Barrier(4)
        threads = [threading.Thread(target=db.run, args=(lambda _: at_once.wait(20),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        conn.execute("""
            select pg_terminate_backend(pid, 5000) from pg_stat_activity
             where datname = current_database() and application_name like 'agentmesh/test/%'
        """)
        db.run(count)
    assert counter() == 1


def test_a_caller_that_waits_for_a_connection_gets_the_one_that_is_given_back(database_url, monkeypatch):
    """Not one kept at hand, of which the pool, where it waits, knows nothing."""
    monkeypatch.setattr(tx, "_ASK_AGAIN", 3600.0)
    taken, release, done = threading.Event(), threading.Event(), threading.Event()

    def hold(_):
        taken.set()
        release.wait(20)

    with Database(database_url, role="test", pool_size=1, patience=3600.0) as db:
        threads = [threading.Thread(target=db.run, args=(hold,))]
        threads[0].start()
        taken.wait(20)
        threads.append(threading.Thread(target=db.run, args=(lambda _: done.set(),)))
        threads[1].start()
        until(lambda: db._asking == 1)
        release.set()
        assert done.wait(20)
        for thread in threads:
            thread.join()


def test_the_connection_at_hand_is_used_again_and_goes_through_the_pool_now_and_then(db, monkeypatch):
    def backend(connection):
        return connection.info.backend_pid

    first = db.run(backend)
    with monkeypatch.context() as patched:
        patched.setattr(db._pool, "getconn", lambda **_: pytest.fail("the pool was asked"))
        assert db.run(backend) == first
        db._at_hand.pooled_again = 0.0
        assert db.run(backend) == first
    assert db._at_hand is None, "it was given to the pool"
    db.run(backend)
    assert db._at_hand is not None


@pytest.fixture
def begun(database_url):
    """A database that begins with a connection made before, and that connection."""
    first = connect(database_url, role="test")
    with Database(database_url, role="test", first=first) as db:
        yield db, first


def same(connection):
    return connection


def test_with_a_first_connection_no_pool_is_made_until_a_second_is_wanted(begun, monkeypatch):
    db, first = begun
    made = []

    def making(*args, **more):
        made.append(open_pool(*args, **more))
        return made[0]

    monkeypatch.setattr(tx, "open_pool", making)
    assert [db.run(same) for _ in range(3)] == [first] * 3
    assert not made
    second = db.run(lambda _: db.run(same))
    assert second is not first
    assert len(made) == 1
    assert first.closed != second.closed, "one is at hand; the first, where it is not needed, ends"


def test_the_first_connection_ends_when_it_would_go_through_the_pool(begun):
    db, first = begun
    first.pooled_again = 0.0
    assert db.run(same) is first
    assert first.closed
    assert not db.run(same).closed


def test_a_first_connection_that_died_is_replaced(begun, conn, counter):
    db, first = begun
    conn.execute("select pg_terminate_backend(%s, 5000)", [first.info.backend_pid])
    db.run(count)
    assert counter() == 1


def test_closing_ends_the_first_connection_also_while_it_is_lent(begun):
    db, first = begun
    of_other_tests = set(threading.enumerate())
    assert db.run(lambda connection: db.close() or connection) is first
    assert first.closed
    with pytest.raises(DatabaseError):
        db.run(same)
    made = set(threading.enumerate()) - of_other_tests
    assert not [thread.name for thread in made if "agentmesh-test" in thread.name]


def test_a_connection_at_hand_that_died_is_replaced(db, conn, counter):
    conn.execute("select pg_terminate_backend(%s, 5000)", [db.run(lambda connection: connection.info.backend_pid)])
    assert db._at_hand is not None
    db.run(count)
    assert counter() == 1


def test_a_transaction_left_open_does_not_reach_the_next_call(db, counter):
    def leave(connection):
        count(connection)
        connection.execute("begin")
        count(connection)

    db.run(leave)
    assert db.run(lambda connection: connection.info.transaction_status) == TransactionStatus.IDLE
    assert counter() == 1


def test_a_call_that_closing_overtakes_leaves_no_session(database_url):
    begun, release = threading.Event(), threading.Event()
    lent = []

    def hold(connection):
        lent.append(connection)
        begun.set()
        release.wait(20)

    db = Database(database_url, role="test")
    db.run(count_sessions)
    caller = threading.Thread(target=db.run, args=(hold,))
    caller.start()
    begun.wait(20)
    db.close()
    release.set()
    caller.join()
    assert lent[0].closed


def test_reads_share_one_connection(db):
    with db.connection() as connection:
        pids = [connection.execute("select pg_backend_pid()").fetchone()[0] for _ in range(2)]
    assert pids[0] == pids[1]


def test_errors_of_lent_connections_are_domain_errors_too(db):
    with pytest.raises(DatabaseError, match="division by zero"), db.connection() as connection:
        connection.execute("select 1 / 0")


def test_no_server_is_reported_with_the_reason():
    url = "postgresql://me:secret@127.0.0.1:1/mesh"
    with Database(url, role="test", patience=0.1) as db, pytest.raises(DatabaseUnreachable) as caught:
        db.run(count)
    assert "Connection refused" in caught.value.message
    assert "secret" not in caught.value.message


def test_a_busy_pool_is_not_called_an_unreachable_server(database_url):
    release = threading.Event()
    taken = threading.Event()

    def hold(_):
        taken.set()
        release.wait(20)

    with Database(database_url, role="test", pool_size=1, patience=0.1) as db:
        holder = threading.Thread(target=db.run, args=(hold,))
        holder.start()
        taken.wait(20)
        with pytest.raises(DatabaseError, match="became free") as caught:
            db.run(count)
        release.set()
        holder.join()
    assert not isinstance(caught.value, DatabaseUnreachable)


def test_a_call_waits_for_a_server_that_comes_back(proxy, counter):
    with Database(proxy.url, role="test") as db:
        db.run(count)
        proxy.refuse()
        done: queue.Queue[None] = queue.Queue()
        caller = threading.Thread(target=lambda: done.put(db.run(count, idempotent=True)))
        caller.start()
        proxy.refused.wait(20)
        proxy.admit()
        caller.join()
        done.get_nowait()
    assert counter() == 2


def test_closing_ends_every_session_and_thread(database_url, conn):
    db = Database(database_url, role="closing")
    db.run(count_sessions)
    db.close()
    db.close()
    assert not [thread.name for thread in threading.enumerate() if "closing" in thread.name]
    with pytest.raises(DatabaseError):
        db.run(count_sessions)


def count_sessions(connection):
    connection.execute("select count(*) from pg_stat_activity").fetchone()
