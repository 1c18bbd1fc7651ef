from __future__ import annotations

import os
import subprocess
import sys

import psycopg
import pytest
from alembic import command
from alembic.script import ScriptDirectory

from agentmesh.store import schema
from agentmesh.store.schema import SchemaState
from tests.migrations.snapshot import dump


@pytest.fixture
def chain(conn):
    return list(ScriptDirectory.from_config(schema.alembic_config(conn)).walk_revisions())[::-1]


def alembic(act, url, revision):
    act(schema.alembic_config(psycopg.connect(url)), revision)


def test_the_revisions_are_one_chain_numbered_from_0001(chain):
    assert [each.revision for each in chain] == [f"{number:04}" for number in range(1, len(chain) + 1)]
    assert schema.head() == chain[-1].revision


def test_each_revision_has_its_two_files(chain):
    for each in chain:
        path = schema.migrations() / "versions" / each.module.__file__
        assert path.with_suffix(".up.sql").exists()
        assert path.with_suffix(".down.sql").exists()


def test_every_step_down_and_up_again_gives_the_same_schema(database_url, conn, chain):
    expected = {}
    for each in chain[::-1]:
        expected[each.revision] = dump(database_url)
        alembic(command.downgrade, database_url, each.down_revision or "base")
    left = conn.execute("""
        select relname::text from pg_class where relnamespace = 'agentmesh'::regnamespace union all
        select proname::text from pg_proc where pronamespace = 'agentmesh'::regnamespace union all
        select typname::text from pg_type where typnamespace = 'agentmesh'::regnamespace and typrelid = 0
                                          and typelem = 0
    """).fetchall()
    assert {name for (name,) in left} == {"alembic_version", "alembic_version_pkc"}
    for each in chain:
        alembic(command.upgrade, database_url, each.revision)
        assert dump(database_url) == expected[each.revision]


def test_alembics_own_command_line_works_with_a_url_in_the_environment(empty_database_url):
    environ = {**os.environ, "AGENTMESH_DATABASE_URL": empty_database_url}
    command_line = [sys.executable, "-m", "alembic", "upgrade", "head"]
    subprocess.run(command_line, cwd=schema.migrations().parent, env=environ, check=True, capture_output=True)
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        assert schema.state(connection) is SchemaState.CURRENT
