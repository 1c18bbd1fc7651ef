from __future__ import annotations

import subprocess
import sys
import threading

import psycopg
import pytest
from alembic import command

from agentmesh.domain.errors import DatabaseError, SchemaAhead, SchemaBehind, SchemaDiffers
from agentmesh.store import schema
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
    command.downgrade(schema.alembic_config(psycopg.connect(database_url)), "-1")
    before = schema.revision(conn)
    assert schema.state(conn) is SchemaState.BEHIND
    with pytest.raises(SchemaBehind, match=f"has schema {before}, but this agentmesh needs {schema.head()}"):
        schema.ensure(database_url, automatic=False)
    schema.ensure(database_url, automatic=True)
    assert schema.state(conn) is SchemaState.CURRENT


@pytest.mark.parametrize("act", [lambda url: schema.ensure(url, automatic=True), schema.upgrade])
def test_a_database_that_is_ahead_is_refused_always(database_url, conn, act):
    pretend(conn, "9999")
    assert schema.state(conn) is SchemaState.AHEAD
    with pytest.raises(SchemaAhead, match=f"schema 9999, newer than the {schema.head()}"):
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
    with pytest.raises(SchemaDiffers, match="has schema 0000, which no release of agentmesh made"):
        schema.upgrade(database_url)


@pytest.mark.slow
def test_an_upgrade_outlasts_a_reader_that_sits_on_a_lock(database_url, conn, connect):
    command.downgrade(schema.alembic_config(psycopg.connect(database_url)), "-1")
    upgrading = threading.Thread(target=schema.upgrade, args=(database_url,))
    attempts: set[tuple[int]] = set()
    with connect(database_url).transaction() as blocking:
        blocking.connection.execute("lock agentmesh.alembic_version in share mode")
        upgrading.start()
        while len(attempts) < 2:
            attempts |= set(conn.execute(BLOCKED_UPGRADES).fetchall())
    upgrading.join()
    assert schema.state(conn) is SchemaState.CURRENT
