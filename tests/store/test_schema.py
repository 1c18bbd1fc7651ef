from __future__ import annotations

import subprocess
import sys
import threading

import psycopg
import pytest

from agentmesh.domain.errors import DatabaseError, SchemaAhead, SchemaBehind, SchemaDiffers
from agentmesh.store import code, schema
from agentmesh.store.schema import SchemaState

WHEN_TOLD = """
import sys
from agentmesh.store.schema import ensure
print("ready", flush=True)
sys.stdin.readline()
ensure(sys.argv[1], automatic=False)
print("alembic" in sys.modules)
"""

BLOCKED_UPGRADES = """
select pid from pg_stat_activity, pg_sleep(0.05)
 where datname = current_database() and application_name like 'agentmesh/schema/%' and wait_event_type = 'Lock'
"""


@pytest.fixture
def connect():
    """Open autocommit connections; close them at the end."""
    opened = []

    def to(url):
        opened.append(psycopg.connect(url, autocommit=True))
        return opened[-1]

    yield to
    for connection in opened:
        connection.close()


def state_of(url):
    with psycopg.connect(url, autocommit=True) as connection:
        return schema.state(connection)


def pretend(connection, revision):
    connection.execute("update agentmesh.alembic_version set version_num = %s", [revision])


def outdate(connection):
    """Let the schema have the code of an older agentmesh, in which one function was another one."""
    connection.execute("update agentmesh.release set version = '0.0.1', code = 'older'")
    connection.execute("update agentmesh.code set digest = 'older' where file = 'functions/send.sql'")


def test_an_empty_database_is_upgraded_without_asking(empty_database_url):
    assert state_of(empty_database_url) is SchemaState.EMPTY
    schema.ensure(empty_database_url, automatic=False)
    assert state_of(empty_database_url) is SchemaState.CURRENT


def test_a_database_of_somebody_elses_is_not(empty_database_url, connect):
    connect(empty_database_url).execute("create table theirs ()")
    with pytest.raises(SchemaBehind, match="has no schema agentmesh") as caught:
        schema.ensure(empty_database_url, automatic=False)
    assert "agentmesh db upgrade" in caught.value.hint
    assert state_of(empty_database_url) is SchemaState.BEHIND
    schema.upgrade(empty_database_url)
    assert state_of(empty_database_url) is SchemaState.CURRENT


def test_what_an_extension_brought_does_not_make_a_database_somebody_elses(empty_database_url, connect):
    connection = connect(empty_database_url)
    connection.execute("create table of_extension ()")
    connection.execute("""
        insert into pg_depend (classid, objid, objsubid, refclassid, refobjid, refobjsubid, deptype)
        select 'pg_class'::regclass, 'of_extension'::regclass, 0, 'pg_extension'::regclass, oid, 0, 'e'
          from pg_extension where extname = 'plpgsql'
    """)
    assert schema.state(connection) is SchemaState.EMPTY


def test_a_database_that_is_behind_is_refused_unless_it_is_ours_to_upgrade(database_url, conn):
    outdate(conn)
    before = schema.installed(conn)
    assert schema.state(conn) is SchemaState.BEHIND
    with pytest.raises(SchemaBehind, match=f"has schema {before}, but this agentmesh needs {schema.needed()}"):
        schema.ensure(database_url, automatic=False)
    schema.ensure(database_url, automatic=True)
    assert schema.state(conn) is SchemaState.CURRENT


@pytest.mark.parametrize("act", [lambda url: schema.ensure(url, automatic=True), schema.upgrade])
def test_a_database_that_is_ahead_is_refused_always(database_url, conn, act):
    pretend(conn, "9999")
    assert schema.state(conn) is SchemaState.AHEAD
    with pytest.raises(SchemaAhead, match=f"schema 9999-{code.digest()}, newer than the {schema.needed()}"):
        act(database_url)
    assert schema.revision(conn) == "9999"


def test_a_failing_upgrade_changes_nothing(empty_database_url, connect):
    connection = connect(empty_database_url)
    connection.execute("create schema agentmesh")
    connection.execute("create table agentmesh.workers ()")
    with pytest.raises(DatabaseError, match='"workers" already exists'):
        schema.upgrade(empty_database_url)
    rows = connection.execute("select relname from pg_class where relnamespace = 'agentmesh'::regnamespace")
    assert rows.fetchall() == [("workers",)]


@pytest.mark.slow
def test_processes_that_start_at_once_upgrade_once(empty_database_url):
    command = [sys.executable, "-c", WHEN_TOLD, empty_database_url]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    imported_alembic = [process.communicate()[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    assert sorted(imported_alembic) == ["False", "False", "False", "True"]
    assert state_of(empty_database_url) is SchemaState.CURRENT


def test_a_schema_that_no_release_made_is_refused_with_a_sentence(database_url, conn):
    pretend(conn, "0000")
    with pytest.raises(SchemaDiffers, match=r"has schema 0000-[0-9a-f]{8}, which no release of agentmesh made"):
        schema.upgrade(database_url)


@pytest.mark.slow
def test_an_upgrade_outlasts_a_reader_that_sits_on_a_lock(database_url, conn, connect):
    outdate(conn)
    upgrading = threading.Thread(target=schema.upgrade, args=(database_url,))
    attempts: set[tuple[int]] = set()
    with connect(database_url).transaction() as blocking:
        blocking.connection.execute("lock agentmesh.code in share mode")
        upgrading.start()
        while len(attempts) < 2:
            attempts |= set(conn.execute(BLOCKED_UPGRADES).fetchall())
    upgrading.join()
    assert schema.state(conn) is SchemaState.CURRENT


def test_a_schema_of_before_the_first_release_is_refused_with_a_sentence(database_url, conn):
    conn.execute("drop table agentmesh.release")
    pretend(conn, "0024")
    assert schema.state(conn) is SchemaState.UNKNOWN
    for automatic in (True, False):
        with pytest.raises(SchemaDiffers, match="has schema 0024, which no release of agentmesh made") as caught:
            schema.ensure(database_url, automatic=automatic)
        assert "drop schema agentmesh cascade" in caught.value.hint


def test_code_of_a_newer_release_on_the_same_tables_is_ahead(database_url, conn):
    conn.execute("update agentmesh.release set version = '99.1', code = 'newer'")
    assert schema.state(conn) is SchemaState.AHEAD
    with pytest.raises(SchemaAhead):
        schema.ensure(database_url, automatic=True)


def test_other_code_of_the_same_release_is_brought_up_to_date(database_url, conn):
    conn.execute("update agentmesh.release set code = 'a checkout of yesterday'")
    schema.ensure(database_url, automatic=True)
    assert schema.state(conn) is SchemaState.CURRENT
