"""Old code on a newer schema: every command says so in one sentence and touches nothing."""

from __future__ import annotations

import psycopg
import pytest

from agentmesh.store import schema
from tests.cli.conftest import CommandLine, am
from tests.fixtures.mesh import Mesh

__all__ = ["am"]

COMMANDS = (
    ("worker", "--any"),
    ("send", "root", "hello"),
    ("db", "upgrade"),
)


def everything(conn: psycopg.Connection) -> list[tuple[str, list[tuple[str]]]]:
    """Return every row of the program's tables."""
    tables = "select tablename from pg_tables where schemaname = 'agentmesh' order by 1"
    names = [name for (name,) in conn.execute(tables).fetchall()]
    rows = "select t::text from agentmesh.{} t order by 1"
    return [(name, conn.execute(rows.format(name)).fetchall()) for name in names]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_old_code_is_refused_on_a_newer_schema(am: CommandLine, conn: psycopg.Connection, command: tuple[str, ...]):
    Mesh(conn)
    conn.execute("update agentmesh.alembic_version set version_num = '9999'")
    before = everything(conn)
    ended = am(*command)
    assert ended.code == 1
    assert f"has schema 9999, newer than the {schema.head()} of this agentmesh" in ended.err
    assert "Upgrade agentmesh" in ended.err
    assert "Traceback" not in ended.err
    assert everything(conn) == before
