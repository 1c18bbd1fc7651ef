"""The schema: whether the database has the one that this program needs, and how it gets it.

Alembic runs the revisions in ``migrations/``, which are tables, types and data, and keeps the current one in
``agentmesh.alembic_version``. The code on top (functions, views, grants) is brought up to date by its text, see
``agentmesh.store.code``. If there is nothing to do, one read shows that, without importing Alembic.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psycopg
from psycopg import errors as pg

import agentmesh
from agentmesh.domain.errors import SchemaAhead, SchemaBehind, SchemaDiffers, SchemaReplaced
from agentmesh.sql import statement
from agentmesh.store import code, moves
from agentmesh.store.errors import translated
from agentmesh.store.pool import KeptConnection, connect, describe

if TYPE_CHECKING:
    from alembic.config import Config

_TURN: Final = 0x61676D73_7475726E  # "agmsturn": one upgrade at a time per database
_UPGRADE_SECONDS: Final = 120.0
_FIRST_WITH_ARRIVALS: Final = "0026"
_SHOWN: Final = 3
"""How many differences a sentence names."""


@dataclass(frozen=True, slots=True)
class Schema:
    """Which schema is in a database: the revision of its tables, and the version of its code."""

    revision: str
    version: str | None = None
    """Version of the agentmesh whose code is there; None if the tables have no code, after a downgrade."""
    code: str | None = None
    """Digest of that code."""
    is_released: bool = True
    """Whether a release made it; development states before the first release are not upgraded."""

    def __str__(self) -> str:
        """Return the name for people: the revision and the code's digest."""
        return f"{self.revision}-{self.code}" if self.code else self.revision


class SchemaState(StrEnum):
    """How the schema in a database compares with this program's."""

    EMPTY = "empty"
    """The database holds nothing at all."""
    BEHIND = "behind"
    """Older than the program's, or missing although other tables are there."""
    CURRENT = "current"
    AHEAD = "ahead"
    """Newer than the program's."""
    UNKNOWN = "unknown"
    """No release of agentmesh made it."""


def head() -> str:
    """Return the newest revision that this program knows, by the names of the files."""
    return max(revisions())


def revisions() -> frozenset[str]:
    """Return all revisions that this program knows, by the names of the files."""
    return frozenset(path.name[:4] for path in (migrations() / "versions").glob("[0-9][0-9][0-9][0-9]_*.py"))


@cache
def needed() -> Schema:
    """Return the schema that this program needs, from the files as they are at the first call."""
    return Schema(head(), agentmesh.__version__, code.digest())


def migrations() -> Path:
    """Return the folder of migrations: the checkout's, or else the one in the wheel."""
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
    """Return how the schema in the database compares with this program's. The connection must be autocommit."""
    return _judge(connection, installed(connection))


def installed(connection: psycopg.Connection) -> Schema | None:
    """Return which schema is in the database, None without one. The connection must be autocommit."""
    try:
        row = connection.execute(statement("code.installed")).fetchone()
    except (pg.UndefinedTable, pg.InvalidSchemaName):
        older = revision(connection)
        return Schema(older, is_released=False) if older else None
    return Schema(*row) if row else None


def check(connection: psycopg.Connection, where: str, folder: Path | None = None) -> None:
    """Raise SchemaDiffers if no release made the schema, or its code is not what this program's files say.

    Code of another release is not compared. ``where`` is the database's name for people. ``folder`` is the embedded
    server's folder, which can be deleted for a fresh start.
    """
    there = installed(connection)
    if there and _judge(connection, there) is SchemaState.UNKNOWN:
        raise _unreleased(there, where, folder)
    if there and there.code == code.digest() and (differing := code.differences(connection)):
        shown = "; ".join(differing[:_SHOWN])
        more = f"; and {len(differing) - _SHOWN} more" if len(differing) > _SHOWN else ""
        raise SchemaDiffers(
            f"The database {where} says that its schema is {there}, but it is not: {shown}{more}.",
            hint="`agentmesh db upgrade` puts back what is missing or differs. What is unexpected is yours to drop.",
        )


def ensure(url: str, *, automatic: bool, folder: Path | None = None) -> None:
    """Make sure that the schema fits: upgrade an empty database, and with ``automatic`` also one that is behind.

    Raise a DatabaseError if it does not fit; its advice names the embedded server's ``folder``.
    """
    connect_ensured(url, role="schema", automatic=automatic, folder=folder).close()


def connect_ensured(url: str, *, role: str, automatic: bool, folder: Path | None = None) -> KeptConnection:
    """Connect to a database and make sure that its schema fits, as ``ensure`` does; return the connection."""
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
    there = installed(connection)
    match _judge(connection, there):
        case SchemaState.CURRENT:
            return
        case SchemaState.AHEAD:
            raise _ahead(where, there)
        case SchemaState.BEHIND if not automatic:
            sentence = (
                f"has schema {there}, but this agentmesh needs {needed()}" if there else "has no schema agentmesh"
            )
            raise SchemaBehind(f"The database {where} {sentence}.", hint="Run `agentmesh db upgrade`.")
        case SchemaState.UNKNOWN if there:
            raise _unreleased(there, where, folder)
        case _:
            upgrade(url, folder)


def upgrade(url: str, folder: Path | None = None) -> None:
    """Upgrade the schema to the newest revision, all or nothing; any number of processes may do so at the same time.

    Functions and views that were changed by hand are restored. Raise SchemaDiffers if no release made the schema, or if
    views of others depend on what is replaced.

    If another session sits on a lock of ours, an attempt fails after ``lock_timeout``, so that nobody queues behind us
    for long. Then it is tried again, for two minutes in all.
    """
    deadline = time.monotonic() + _UPGRADE_SECONDS
    where = describe(url)
    with translated(where):
        while True:
            try:
                with connect(url, role="schema") as turn, connect(url, role="schema") as connection:
                    _take_turn(turn)
                    return _upgrade(connection, where, folder)
            except (pg.LockNotAvailable, pg.DeadlockDetected):
                if time.monotonic() >= deadline:
                    raise


def _take_turn(connection: KeptConnection) -> None:
    """Begin a transaction beside which no other upgrade runs, until the connection is closed.

    It is not the transaction of the upgrade, because SQLAlchemy ends what it finds open. So the lock is not the one
    that the grants take, either. All that is set ends with the transaction: a pooler lends its session to others.
    """
    connection.autocommit = False
    connection.execute(
        "select set_config('lock_timeout', '5s', true), set_config('idle_in_transaction_session_timeout', '0', true)"
    )
    connection.execute("select pg_advisory_xact_lock(%s)", [_TURN])


def let_take_long(connection: psycopg.Connection) -> None:
    """Lift the time limit of statements for the transaction that is open."""
    connection.execute("select set_config('statement_timeout', '0', true)")


def alembic_config(connection: psycopg.Connection) -> Config:
    """Return a configuration with which Alembic's commands run on this connection, which they close."""
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(migrations()).replace("%", "%%"))
    return config


def _upgrade(connection: KeptConnection, where: str, folder: Path | None) -> None:
    connection.answer_seconds = None
    # The look comes after the lock: its last holder may have done the work.
    there = installed(connection)
    found = _judge(connection, there)
    match found:
        case SchemaState.CURRENT if not code.differences(connection):
            return
        case SchemaState.AHEAD:
            raise _ahead(where, there)
        case SchemaState.UNKNOWN if there:
            raise _unreleased(there, where, folder)
    connection.autocommit = False
    if there and there.revision == head():
        let_take_long(connection)
        if found is SchemaState.CURRENT:
            code.drop(connection, where)  # part of it was changed by hand, so all of it is made again
        code.bring_up_to_date(connection, where)
        connection.commit()
        return
    _require_nothing_sealed(connection, where, there)
    from alembic import command

    config = alembic_config(connection)
    config.attributes["where"] = where
    command.upgrade(config, "head")


def _require_nothing_sealed(connection: psycopg.Connection, where: str, there: Schema | None) -> None:
    """Refuse to change the tables while a session arrives: its rows have the form that the tables have now."""
    if there is None or there.revision < _FIRST_WITH_ARRIVALS:
        return
    if sealed := moves.arrivals(connection):
        raise SchemaDiffers(
            f"In the database {where} sessions are still arriving ({len(sealed)}), so its schema cannot change now.",
            hint=f"Run `agentmesh sessions move --resume` with agentmesh {there.version}; then upgrade.",
        )


def _unreleased(there: Schema, where: str, folder: Path | None) -> SchemaDiffers:
    sentence = f"The database {where} has schema {there}, which no release of agentmesh made."
    return SchemaDiffers(sentence, hint=_advice(folder))


def replaced(where: str, found: Schema, hint: str) -> SchemaReplaced:
    """Return the error for a program under which somebody has upgraded the schema to the one found."""
    return SchemaReplaced(
        f"The database {where} has been upgraded to schema {found}, newer than the {needed()} of this agentmesh.",
        hint=hint,
    )


def _ahead(where: str, there: Schema | None) -> SchemaAhead:
    return SchemaAhead(
        f"The database {where} has schema {there}, newer than the {needed()} of this agentmesh.",
        hint="Upgrade agentmesh: a newer one already uses this database.",
    )


def _advice(folder: Path | None) -> str:
    why = "A development version of agentmesh made it."
    if folder:
        anew = (
            f"End the programs that use it and delete {folder} (the sessions in it are lost); the next start makes it"
        )
        return f"{why}\n{anew} anew. Or leave it, and name another folder: AGENTMESH_DATA_DIR."
    anew = "End the programs that use it, `drop schema agentmesh cascade` in it (its sessions are lost), and run"
    return f"{why}\n{anew} `agentmesh db upgrade`. Or leave it, and name another database: AGENTMESH_DATABASE_URL."


def _judge(connection: psycopg.Connection, there: Schema | None) -> SchemaState:
    if there is None:
        return SchemaState.EMPTY if _is_empty(connection) else SchemaState.BEHIND
    if not there.is_released or (there.revision < head() and there.revision not in revisions()):
        return SchemaState.UNKNOWN
    if there.revision == head() and there.code == needed().code:
        return SchemaState.CURRENT
    return SchemaState.AHEAD if _rank(there) > _rank(needed()) else SchemaState.BEHIND


def _rank(one: Schema) -> tuple[str, list[int]]:
    """Return a key that grows with each release: the revision, then the numbers of the code's version."""
    return one.revision, [int(number) for number in re.findall(r"\d+", one.version or "")]


def _is_empty(connection: psycopg.Connection) -> bool:
    """Return whether there are no relations except those of the system and of extensions."""
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
