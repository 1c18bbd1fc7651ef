"""The revisions go up and down, and every way to a schema leads to the same one."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import psycopg
import pytest
from alembic import command
from alembic.script import ScriptDirectory

from agentmesh.store import code, schema
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


@pytest.mark.slow
def test_down_step_by_step_and_up_again_gives_the_same_schema(database_url, conn, chain):
    expected = dump(database_url)
    for each in chain[::-1]:
        alembic(command.downgrade, database_url, each.down_revision or "base")
        assert code.differences(conn)[:1] == ["function add_merge is missing"], "the code goes before the tables do"
    left = conn.execute("""
        select relname::text from pg_class where relnamespace = 'agentmesh'::regnamespace union all
        select proname::text from pg_proc where pronamespace = 'agentmesh'::regnamespace union all
        select typname::text from pg_type where typnamespace = 'agentmesh'::regnamespace and typrelid = 0
                                          and typelem = 0
    """).fetchall()
    assert {name for (name,) in left} == {"alembic_version", "alembic_version_pkc"}
    for each in chain:
        alembic(command.upgrade, database_url, each.revision)
    assert dump(database_url) == expected
    assert schema.state(conn) is SchemaState.CURRENT


def test_code_that_was_another_ends_as_the_same_schema(database_url, conn, monkeypatch):
    expected = dump(database_url)
    older = {
        name: re.sub(r"\bsend\(sender uuid, recipient uuid", "send(by uuid, recipient uuid", text)
        for name, text in code.files().items()
    }
    older["views/v_older.sql"] = "create view agentmesh.v_older as select agentmesh.path(id) from agentmesh.agents;"
    with monkeypatch.context() as before:
        before.setattr(code, "files", lambda: older)
        for cached in (code.digest, schema.needed):
            cached.cache_clear()
        schema.upgrade(database_url)
        assert "send(by uuid" in dump(database_url)
    for cached in (code.digest, schema.needed):
        cached.cache_clear()
    schema.upgrade(database_url)
    assert dump(database_url) == expected
    assert code.differences(conn) == []


@pytest.mark.slow
def test_alembics_own_command_line_works_with_a_url_in_the_environment(empty_database_url):
    environ = {**os.environ, "AGENTMESH_DATABASE_URL": empty_database_url}
    command_line = [sys.executable, "-m", "alembic", "upgrade", "head"]
    subprocess.run(command_line, cwd=schema.migrations().parent, env=environ, check=True, capture_output=True)
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        assert schema.state(connection) is SchemaState.CURRENT
