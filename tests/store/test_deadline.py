"""Issue 17, point 14: a server that is frozen while its kernel answers for it holds up nobody for ever."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

import agentmesh
from agentmesh.domain.errors import DatabaseUnreachable
from agentmesh.store import deadline
from agentmesh.store.pool import connect
from agentmesh.store.tx import Database
from tests.faults.cluster import cluster, shaken
from tests.fixtures.engine import until
from tests.fixtures.proxy import Proxy, proxy

__all__ = ["cluster", "proxy", "shaken"]


def backend(connection: psycopg.Connection) -> int:
    """Return the process of the server behind a connection."""
    return connection.info.backend_pid


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Stop a process of the server, as the machine of a replaced primary is stopped; its kernel goes on."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def hasty(db: Database) -> int:
    """Let the connection at hand have a short deadline; return the process behind it."""
    with db.connection() as held:
        assert isinstance(held, deadline.BoundedConnection)
        held.answer_seconds = 0.3
        return backend(held)


def answer(connection: psycopg.Connection) -> int:
    row = connection.execute("select 42").fetchone()
    assert row is not None
    return int(row[0])


def test_the_deadline_is_longer_than_any_lock_and_any_statement_may_take(database_url):
    with connect(database_url, role="test") as connection:
        server = connection.execute("select extract(epoch from current_setting('statement_timeout')::interval)")
        for (longest,) in server:
            assert connection.answer_seconds == deadline.ANSWER_SECONDS > longest


def test_a_statement_that_nobody_answers_ends_with_the_connection(database_url):
    with connect(database_url, role="test") as connection:
        connection.answer_seconds = 0.3
        with frozen(backend(connection)), pytest.raises(psycopg.OperationalError, match="not answered a statement"):
            answer(connection)
        assert connection.closed


@pytest.fixture
def hasty_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a statement that may take any time look at its server often, and not for long."""
    for name, seconds in {"_SLOW_SECONDS": 0.1, "_LOOK_SECONDS": 0.5, "_LOOK_EVERY": 0.1}.items():
        monkeypatch.setattr(deadline, name, seconds)


def test_a_statement_that_may_take_any_time_ends_if_its_server_answers_nobody(proxy: Proxy, hasty_looks: None):
    with connect(proxy.url, role="test") as connection:
        connection.answer_seconds = None
        proxy.fall_silent()
        with pytest.raises(psycopg.OperationalError, match="not answered a statement"):
            answer(connection)
        assert connection.closed


def test_a_statement_that_may_take_any_time_has_it_while_its_server_answers_others(
    database_url: str, hasty_looks: None, monkeypatch: pytest.MonkeyPatch
):
    looks: list[None] = []
    look = deadline.BoundedConnection._look_for_standby
    monkeypatch.setattr(deadline, "_LOOK_SECONDS", 30.0)
    with connect(database_url, role="test") as connection, connect(database_url, role="test") as holder:
        connection.answer_seconds = None

        def looked(held: deadline.BoundedConnection) -> None:
            look(held)
            looks.append(None)
            if len(looks) == 3:
                holder.execute("select pg_advisory_unlock(1)")

        monkeypatch.setattr(deadline.BoundedConnection, "_look_for_standby", looked)
        holder.execute("select pg_advisory_lock(1)")
        connection.execute("set lock_timeout = 0")
        connection.execute("set statement_timeout = 0")
        connection.execute("select pg_advisory_lock(1)")
        assert len(looks) >= 3
        assert answer(connection) == 42


@pytest.mark.slow
def test_a_server_that_goes_on_telling_has_all_the_time_that_it_needs(database_url):
    with connect(database_url, role="test") as connection:
        connection.answer_seconds = 0.5
        rows = "select pg_sleep(0.02), repeat('x', 10000) from generate_series(1, 60)"
        assert len(connection.execute(rows).fetchall()) == 60


def test_a_call_whose_server_froze_is_told_so_or_repeated(db: Database):
    pid = hasty(db)
    with frozen(pid), pytest.raises(DatabaseUnreachable, match=r"not answered.*unknown"):
        db.run(answer)
    pid = hasty(db)
    with frozen(pid):
        assert db.run(answer, idempotent=True) == 42


def test_what_is_in_flight_when_the_server_was_replaced_has_a_few_seconds_left(db: Database, monkeypatch):
    monkeypatch.setattr(deadline, "_HASTE_SECONDS", 0.3)
    with db.connection() as held:
        pid = backend(held)
    with frozen(pid), ThreadPoolExecutor(1) as pool:
        found = pool.submit(db.run, answer, idempotent=True)
        until(lambda: db._lent, "the call")
        db.renew()
        assert found.result(timeout=15) == 42


def test_no_connection_made_before_the_server_was_replaced_is_used_again(db: Database):
    def pids() -> set[int]:
        with db.connection() as one, db.connection() as two:
            return {backend(one), backend(two)}

    before = pids()
    assert pids() == before
    db.renew()
    assert not pids() & before


def test_a_replaced_listen_connection_renews_all_others(rig, monkeypatch):
    for name, value in {"DATABASE_URL": rig.url, "MODEL": "demo", "CONFIG_DIR": str(rig.workdir)}.items():
        monkeypatch.setenv(f"AGENTMESH_{name}", value)
    with agentmesh.open(background_workers=False) as mesh:
        database = mesh.core.database
        with database.connection() as held:
            before = backend(held)
        again = threading.Event()
        listener = mesh.core.listener(lambda _channel, _payload: None, again.set)
        listener.start()
        try:
            ended = "select pg_terminate_backend(pid) from pg_stat_activity where application_name like %s"
            rig.conn.execute(ended, [f"agentmesh/listener/{os.getpid()}"])
            assert again.wait(20)
            with database.connection() as held:
                assert backend(held) != before
        finally:
            listener.stop()


def test_a_commit_that_waits_for_a_standby_that_is_not_there_says_so(shaken, cluster, caplog, monkeypatch):
    monkeypatch.setattr(deadline, "_SLOW_SECONDS", 0.2)
    monkeypatch.setattr(deadline._Told, "at", -deadline._TOLD_EVERY)
    cluster.run("alter system set synchronous_standby_names = 'nobody'", "select pg_reload_conf()")
    try:
        with ThreadPoolExecutor(1) as pool, caplog.at_level(logging.WARNING, "agentmesh"):
            until(lambda: shaken.one("select current_setting('synchronous_standby_names')") == "nobody", "the setting")
            sent = pool.submit(shaken.prompt)
            until(lambda: "hang: a synchronous standby does not confirm them" in caplog.text, "the warning")
            assert "synchronous_standby_names is 'nobody'" in caplog.text
            assert not sent.done()
            cluster.run("alter system reset synchronous_standby_names", "select pg_reload_conf()")
            sent.result(timeout=20)
    finally:
        cluster.run("alter system reset synchronous_standby_names", "select pg_reload_conf()")
