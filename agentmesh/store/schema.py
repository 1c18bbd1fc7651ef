"""The schema's version: whether the database has the one this program needs, and bringing it there.

Alembic runs the revisions of ``migrations/`` and keeps the current one in ``agentmesh.alembic_version``. To see that
there is nothing to do takes one read of that table and no import of Alembic. A schema that has to be upgraded is first
compared with what its revision stands for: revisions are steps, and lead from one known place to the next.
"""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg
from psycopg import errors as pg

import agentmesh
from agentmesh.domain.errors import SchemaAhead, SchemaBehind, SchemaDiffers
from agentmesh.store import manifest
from agentmesh.store.errors import translated
from agentmesh.store.pool import KeptConnection, connect, describe

if TYPE_CHECKING:
    from alembic.config import Config

_LOCK_KEY: Final = 0x61676D73_63686D61  # "agmschma": one upgrade at a time per database
_UPGRADE_SECONDS: Final = 120.0
_SHOWN: Final = 3
"""Differences that a sentence names."""


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


def manifests() -> Path:
    """Return the folder with the list of what each revision from 0013 on stands for (see ``manifest``)."""
    return migrations() / "manifests"


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


def check(connection: psycopg.Connection, where: str, folder: Path | None = None) -> None:
    """Raise SchemaDiffers unless the schema is what its revision stands for; of newer revisions nothing is known.

    ``where`` is the database's name for people, ``folder`` the embedded server's: what can be deleted to begin anew.
    """
    found = manifest.live(connection)
    revision = found[manifest.REVISION]
    if revision > head():
        return
    wanted = manifest.stored(manifests() / f"{revision}.txt")
    if wanted is None:
        sentence = f"The database {where} has schema {revision}, which no release of agentmesh made."
        raise SchemaDiffers(sentence, hint=_advice(folder))
    if differing := manifest.differences(wanted, found):
        shown = "; ".join(differing[:_SHOWN])
        more = f"; and {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else ""
        raise SchemaDiffers(
            f"The database {where} says that its schema is {revision}, but it is not: {shown}{more}.",
            hint=_advice(folder),
        )


def ensure(url: str, *, automatic: bool, folder: Path | None = None) -> None:
    """Make sure that the schema fits; an empty database is upgraded, with ``automatic`` also one that is behind.

    Raise a DatabaseError where it does not; its advice names the embedded server's ``folder``.
    """
    connect_ensured(url, role="schema", automatic=automatic, folder=folder).close()


def connect_ensured(url: str, *, role: str, automatic: bool, folder: Path | None = None) -> KeptConnection:
    """Connect to a database whose schema fits, as ``ensure`` has it; return the connection."""
    where = describe(url)
    with translated(where):
        connection = connect(url, role=role)
        try:
            _ensure(connection, url, where, automatic=automatic, folder=folder)
        except BaseException:
            connection.close()
            raise
    return connection


def _ensure(connection: KeptConnection, url: str, where: str, *, automatic: bool, folder: Path | None) -> None:
    found = revision(connection)
    match _judge(connection, found):
        case SchemaState.CURRENT:
            return
        case SchemaState.AHEAD:
            raise _ahead(where, found)
        case SchemaState.BEHIND if not automatic:
            if found:
                check(connection, where, folder)  # rather than after `agentmesh db upgrade` has been tried
            sentence = f"has schema {found}, but this agentmesh needs {head()}" if found else "has no schema agentmesh"
            raise SchemaBehind(f"The database {where} {sentence}.", hint="Run `agentmesh db upgrade`.")
        case SchemaState.EMPTY | SchemaState.BEHIND:
            upgrade(url, folder)


def upgrade(url: str, folder: Path | None = None) -> None:
    """Bring the schema to the head, all or nothing; any number of processes may do this at the same time.

    Raise SchemaDiffers where what is there is not what its revision stands for (see ``check``).

    A session that sits on a lock of ours makes an attempt fail after ``lock_timeout``, so that nobody queues behind us
    for long; then it is tried again, for two minutes in all.
    """
    deadline = time.monotonic() + _UPGRADE_SECONDS
    where = describe(url)
    with translated(where):
        while True:
            try:
                with connect(url, role="schema") as connection:
                    return _upgrade(connection, where, folder)
            except (pg.LockNotAvailable, pg.DeadlockDetected):
                if time.monotonic() >= deadline:
                    raise


def alembic_config(connection: psycopg.Connection) -> Config:
    """Return a configuration with which Alembic's commands run on this connection, which they close."""
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(migrations()).replace("%", "%%"))
    return config


def _upgrade(connection: KeptConnection, where: str, folder: Path | None) -> None:
    connection.execute("select set_config('statement_timeout', '0', false)")
    connection.answer_seconds = None
    connection.execute("select pg_advisory_lock(%s)", [_LOCK_KEY])
    # The look comes after the lock: whoever held it may have done the work.
    found = revision(connection)
    match _judge(connection, found):
        case SchemaState.CURRENT:
            return
        case SchemaState.AHEAD:
            raise _ahead(where, found)
    if found:
        check(connection, where, folder)
    from alembic import command

    connection.autocommit = False
    command.upgrade(alembic_config(connection), "head")


def _ahead(where: str, found: str | None) -> SchemaAhead:
    return SchemaAhead(
        f"The database {where} has schema {found}, newer than the {head()} of this agentmesh.",
        hint="Upgrade agentmesh: a newer one already uses this database.",
    )


def _advice(folder: Path | None) -> str:
    why = "A development version of agentmesh made it, or somebody changed it by hand (then put that back)."
    if folder:
        anew = (
            f"End the programs that use it and delete {folder} (the sessions in it are lost); the next start makes it"
        )
        return f"{why}\n{anew} anew. Or leave it, and name another folder: AGENTMESH_DATA_DIR."
    anew = "End the programs that use it, `drop schema agentmesh cascade` in it (its sessions are lost), and run"
    return f"{why}\n{anew} `agentmesh db upgrade`. Or leave it, and name another database: AGENTMESH_DATABASE_URL."


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
