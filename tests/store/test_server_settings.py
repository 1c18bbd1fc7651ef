"""Issue 17, point 17: whatever a server, a database or a role is set to, what we depend on is set by us."""

from __future__ import annotations

import signal
import time
from contextlib import closing

import psycopg
import pytest
from psycopg import sql

from agentmesh.domain.errors import DatabaseError, MessageTooLarge
from agentmesh.store import health
from agentmesh.store.pool import connect
from agentmesh.store.tx import Database
from tests.cli.conftest import CommandLine
from tests.faults.cluster import cluster, shaken
from tests.fixtures.mesh import Mesh

__all__ = ["cluster", "shaken"]

STRANGE = {
    "DateStyle": "German, DMY",
    "IntervalStyle": "sql_standard",
    "TimeZone": "Asia/Kathmandu",
    "array_nulls": "off",
    "quote_all_identifiers": "on",
    "bytea_output": "escape",
    "extra_float_digits": "-15",
    "standard_conforming_strings": "off",
    "transform_null_equals": "on",
    "search_path": "nowhere",
    "idle_session_timeout": "300ms",
    "default_transaction_isolation": "serializable",
    "plan_cache_mode": "force_custom_plan",
    "gin_fuzzy_search_limit": "1",
}


@pytest.fixture
def am(tmp_path, database_url) -> CommandLine:
    """``am("ps", "--json")`` runs ``agentmesh ps --json``."""
    return CommandLine(tmp_path / "work", AGENTMESH_DATABASE_URL=database_url)


@pytest.fixture
def strange(conn: psycopg.Connection, database_url: str) -> str:
    """A database whose settings are all different from what is usual."""
    for name, value in STRANGE.items():
        as_list = sql.SQL(", ").join(sql.Literal(part) for part in value.split(", "))
        of = sql.SQL("alter database {} set {} to {}")
        conn.execute(of.format(sql.Identifier(conn.info.dbname), sql.Identifier(name), as_list))
    return database_url


@pytest.mark.parametrize("name", STRANGE)
def test_a_setting_that_we_depend_on_is_ours_on_every_connection(strange, conn, name):
    with psycopg.connect(strange) as other:
        theirs = other.execute("select current_setting(%s)", [name]).fetchone()
    usual = conn.execute("select boot_val from pg_settings where name = %s", [name]).fetchone()
    with connect(strange, role="test") as connection:
        ours = connection.execute("select current_setting(%s)", [name]).fetchone()
    assert ours != theirs
    if name not in ("TimeZone", "search_path", "DateStyle"):
        assert ours == usual or ours == ("0",)


@pytest.mark.slow
def test_sessions_are_made_shown_and_waited_for_in_such_a_database(am, strange):
    done = am("run", "--model", "demo", "Look around", AGENTMESH_DATABASE_URL=strange)
    assert (done.code, "bug in agentmesh" in done.err) == (0, False)
    for command in ("ps", "ps --json", "tree", "log root", "cost", "timeline", "sessions", "export", "search Look"):
        shown = am(*command.split(), AGENTMESH_DATABASE_URL=strange)
        assert (shown.code, "agentmesh:" in shown.err) == (0, False), command
        assert shown.out


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1", "EUC_JP"])
def test_a_database_that_cannot_hold_every_text_is_refused_in_a_sentence(admin, server_url, am, encoding):
    name = f"am_{encoding.lower()}"
    made = sql.SQL("create database {} template template0 encoding {} locale 'C'")
    admin.execute(made.format(sql.Identifier(name), sql.Literal(encoding)))
    try:
        url = psycopg.conninfo.make_conninfo(server_url, dbname=name)
        with pytest.raises(DatabaseError, match=rf"has the encoding {encoding}; agentmesh needs UTF8"):
            connect(url, role="test")
        with Database(url, role="test", patience=0.1) as db, pytest.raises(DatabaseError, match="needs UTF8"):
            db.run(health.server)
        said = am("ps", AGENTMESH_DATABASE_URL=url)
        assert said.code == 1
        assert "needs UTF8" in said.err
        assert "createdb" in said.err
    finally:
        admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def test_two_hundred_megabytes_are_too_large_at_once(mesh: Mesh):
    """They are not even sent: the server would take seconds and memory to find out."""
    huge = "x" * 200_000_000
    for attempt in (
        lambda: mesh.send(None, mesh.root, huge),
        lambda: mesh.fork(mesh.root, "a", huge),
        lambda: mesh.send(None, mesh.root, "ü" * 131_073),
    ):
        began = time.process_time()
        with pytest.raises(MessageTooLarge, match="the limit is 262144"):
            attempt()
        assert time.process_time() - began < 5
    assert mesh.send(None, mesh.root, "ü" * 131_072)


@pytest.mark.slow
def test_a_full_queue_of_notifications_names_the_process_to_end(shaken, cluster, tmp_path):
    """One listener that stays in a transaction is enough, in any database of the server."""
    if shaken.conn.info.server_version < 170000:
        pytest.skip("before 17 the queue holds 8 GB")
    cluster.run("alter system set max_notify_queue_pages = 64")
    shaken.conn.close()
    cluster.stop(signal.SIGINT)
    cluster.start()
    shaken.conn = psycopg.connect(shaken.url, autocommit=True)
    with closing(psycopg.connect(cluster.url("postgres"), application_name="somebody's script")) as listener:
        listener.execute("listen whatever")
        listener.commit()
        listener.execute("select 1")  # and sits in the transaction that this began
        pump = "select pg_notify('pump', repeat('x', 7900) || n) from generate_series(1, 20) n"
        with pytest.raises(psycopg.errors.ProgramLimitExceeded):
            all(shaken.conn.execute(pump) for _ in range(1000))
        pid = listener.info.backend_pid
        with pytest.raises(DatabaseError, match=rf"NOTIFY queue is \d+% full: process {pid} ") as raised:
            shaken.prompt()
        assert "somebody's script" in raised.value.message
        assert raised.value.hint == f"End that process: select pg_terminate_backend({pid});"
        am = CommandLine(tmp_path / "work", AGENTMESH_DATABASE_URL=shaken.url)
        told = am("doctor")
        assert told.code == 1
        assert f"pg_terminate_backend({pid})" in told.out
        shaken.conn.execute("select pg_terminate_backend(%s)", [pid])
        shaken.until(lambda: not shaken.one("select pg_notification_queue_usage() > 0.5"), "an empty queue")
        assert shaken.prompt()
        assert "NOTIFY queue" not in am("doctor").out
        cluster.run("alter system reset max_notify_queue_pages")
