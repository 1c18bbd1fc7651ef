"""The schema's version: whether the database has the one this program needs, and bringing it there.

Alembic runs the revisions of ``migrations/`` and keeps the current one in ``agentmesh.alembic_version``. To see that
there is nothing to do takes one read of that table and no import of Alembic.
"""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg
from psycopg import errors as pg

import agentmesh
from agentmesh.domain.errors import DatabaseError, SchemaAhead, SchemaBehind
from agentmesh.store.errors import translated
from agentmesh.store.pool import connect, describe

if TYPE_CHECKING:
    from alembic.config import Config

_LOCK_KEY: Final = 0x61676D73_63686D61  # "agmschma": one upgrade at a time per database
_UPGRADE_SECONDS: Final = 120.0


class SchemaState(StrEnum):
    """How the schema in a database stands to this program's."""

    EMPTY = "empty"
    """The database holds nothing at all."""
    BEHIND = "behind"
    """Older than the program, or not there while other tables are."""
    CURRENT = "current"
    AHEAD = "ahead"
    """Newer than the program."""


def head() -> str:
    """Return the newest revision that this program knows, by the names of the files."""
    return max(path.name[:4] for path in (migrations() / "versions").glob("[0-9][0-9][0-9][0-9]_*.py"))


def migrations() -> Path:
    """Return the folder of migrations: the checkout's, else the one that the wheel carries."""
    package = Path(agentmesh.__file__).parent
    checkout = package.parent
    if (checkout / "pyproject.toml").exists() and (checkout / "migrations" / "env.py").exists():
        return checkout / "migrations"
    return package / "_migrations"


def revision(connection: psycopg.Connection) -> str | None:
    """Return the revision of the schema in the database, None without one. The connection must be autocommit."""
    try:
        row = connection.execute("select version_num from agentmesh.alembic_version").fetchone()
    except (pg.UndefinedTable, pg.InvalidSchemaName):
        return None
    return str(row[0]) if row else None


def state(connection: psycopg.Connection) -> SchemaState:
    """Tell how the schema in the database stands to this program's. The connection must be autocommit."""
    return _judge(connection, revision(connection))


def ensure(url: str, *, automatic: bool) -> None:
    """Make sure that the schema fits; an empty database is upgraded, with ``automatic`` also one that is behind."""
    where = describe(url)
    with translated(where), connect(url, role="schema") as connection:
        found = revision(connection)
        judged = _judge(connection, found)
    match judged:
        case SchemaState.CURRENT:
            return
        case SchemaState.AHEAD:
            raise _ahead(where, found)
        case SchemaState.BEHIND if not automatic:
            sentence = f"has schema {found}, but this agentmesh needs {head()}" if found else "has no schema agentmesh"
            raise SchemaBehind(f"The database {where} {sentence}.", hint="Run `agentmesh db upgrade`.")
        case SchemaState.EMPTY | SchemaState.BEHIND:
            upgrade(url)


def upgrade(url: str) -> None:
    """Bring the schema to the head, all or nothing; any number of processes may do this at the same time.

    A session that sits on a lock of ours makes an attempt fail after ``lock_timeout``, so that nobody queues behind us
    for long; then it is tried again, for two minutes in all.
    """
    deadline = time.monotonic() + _UPGRADE_SECONDS
    where = describe(url)
    with translated(where):
        while True:
            try:
                with connect(url, role="schema") as connection:
                    return _upgrade(connection, where)
            except (pg.LockNotAvailable, pg.DeadlockDetected):
                if time.monotonic() >= deadline:
                    raise


def alembic_config(connection: psycopg.Connection) -> Config:
    """Return a configuration with which Alembic's commands run on this connection, which they close."""
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(migrations()).replace("%", "%%"))
    return config


def _upgrade(connection: psycopg.Connection, where: str) -> None:
    connection.execute("select set_config('statement_timeout', '0', false)")
    connection.execute("select pg_advisory_lock(%s)", [_LOCK_KEY])
    # The look comes after the lock: whoever held it may have done the work.
    found = revision(connection)
    match _judge(connection, found):
        case SchemaState.CURRENT:
            return
        case SchemaState.AHEAD:
            raise _ahead(where, found)
    from alembic import command
    from alembic.util import CommandError

    connection.autocommit = False
    try:
        command.upgrade(alembic_config(connection), "head")
    except CommandError as error:
        raise DatabaseError(
            f"The database {where} cannot be upgraded from schema {found}: {error}",
            hint="No released agentmesh made this schema; restore a backup, or use another database.",
        ) from error


def _ahead(where: str, found: str | None) -> SchemaAhead:
    return SchemaAhead(
        f"The database {where} has schema {found}, newer than the {head()} of this agentmesh.",
        hint="Upgrade agentmesh: a newer one already uses this database.",
    )


def _judge(connection: psycopg.Connection, found: str | None) -> SchemaState:
    if found is None:
        return SchemaState.EMPTY if _is_empty(connection) else SchemaState.BEHIND
    if found == head():
        return SchemaState.CURRENT
    return SchemaState.BEHIND if found < head() else SchemaState.AHEAD


def _is_empty(connection: psycopg.Connection) -> bool:
    """Tell whether there is no relation but the system's and those of extensions."""
    row = connection.execute("""
        select not exists (
          select from pg_class c
            join pg_namespace n on n.oid = c.relnamespace
           where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
             and not exists (
               select from pg_depend d
                where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e'
             )
        )
    """).fetchone()
    return bool(row and row[0])
