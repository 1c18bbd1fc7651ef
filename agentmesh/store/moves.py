"""Moves of sessions between databases: a sealed copy at the destination, one commit at the source that decides.

These functions are the steps; ``agentmesh.app.moving`` takes them in order. Rows travel as the text that PostgreSQL
writes for a composite value, which it reads again exactly.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row, scalar_row
from psycopg.types.json import Jsonb

from agentmesh.domain.errors import SessionChanged
from agentmesh.domain.ids import SessionId, beginning_with
from agentmesh.sql import statement
from agentmesh.store.call import scalar
from agentmesh.store.errors import translated
from agentmesh.store.pool import connect, describe, is_direct

if TYPE_CHECKING:
    from agentmesh.store.tx import Database

_COPIES: Final = 3
"""How often a session is copied if it changes meanwhile."""
_ROWS: Final = 500
"""Rows in one answer of the source."""


class Departure(NamedTuple):
    """A move, as the database tells where the session was."""

    id: UUID
    session_id: SessionId
    destination: str
    """The name of the database, in the mover's configuration."""
    departed_at: datetime | None
    """From then on the session is at the destination; None if it is still here."""


class Departed(NamedTuple):
    """A session that has departed."""

    rows: int
    offsets: Mapping[str, int]
    """The offset that is added to its numbers, by table."""


class Arrival(NamedTuple):
    """A session that has arrived sealed: no verb sees it yet."""

    id: UUID
    """The id of the move."""
    session_id: SessionId
    source: str
    """The name of the database, in the mover's configuration."""


@contextmanager
def patient_connection(database: Database) -> Iterator[Connection]:
    """Connect without a limit for statements: how long one takes depends on the size of the session.

    Behind a pooler the limits are the role's, which has none by default.
    """
    with translated(database.where), connect(database.direct_url, role="move") as connection:
        connection.answer_seconds = None
        if is_direct(connection):
            connection.execute(
                "select set_config('statement_timeout', '0', false),"
                " set_config('idle_in_transaction_session_timeout', '60s', false)"
            )
        yield connection


def begin(conn: Connection, session: SessionId, destination: str) -> UUID:
    """Say that the session is to move to the database of this name; return the move.

    Raise UnknownSession, SessionEnded if it is being erased, or SessionRunning.
    """
    with translated(_place(conn)):
        return scalar(conn, statement("moves.begin"), {"session": session, "destination": destination}, UUID)


def is_here(conn: Connection, move: UUID) -> bool:
    """Return whether the move began in this database."""
    return scalar(conn, statement("moves.is_here"), {"move": move}, bool)


def leave(leaving: Connection, arriving: Connection, move: UUID, session: SessionId, name: str) -> Departed:
    """Copy a session to where it goes, and let it depart; then only ``unpack`` is left to do.

    ``name`` is the name of the database that it leaves. Raise SessionChanged if it changes again and again,
    SessionRunning, or MoveOver; then it stays as it was.
    """
    for attempt in range(_COPIES):
        rows = copy(leaving, arriving, move, session, name)
        offsets = number(arriving, move)
        rehearse(arriving, move)
        try:
            with translated(_place(leaving)):
                depart(leaving, move, digests(arriving, move))
        except SessionChanged:
            if attempt == _COPIES - 1:
                raise
        else:
            return Departed(rows, offsets)
    raise AssertionError("the last attempt returns or raises")


def copy(source: Connection, destination: Connection, move: UUID, session: SessionId, name: str) -> int:
    """Copy all rows of a session, as one snapshot of them, into a sealed arrival; return how many.

    ``name`` is the name of the source. Rows that had arrived by this move before are thrown away. Raise SessionThere.
    """
    count = 0
    with source.transaction(), destination.transaction():
        destination.execute(statement("moves.arrive"), {"move": move, "session": session, "source": name})
        with (
            destination.cursor() as cursor,
            cursor.copy(statement("moves.store_rows")) as arriving,
            closing(_snapshot(source, session)) as leaving,
        ):
            for relation, n, text in leaving:
                arriving.write_row((move, relation, n, text))
                count += 1
    return count


def _snapshot(source: Connection, session: SessionId) -> Generator[tuple[str, int, str], None, None]:
    """Yield a session's rows as the transaction that has just begun sees them: table, place in it, text."""
    with translated(_place(source)):
        source.execute("set transaction isolation level repeatable read, read only")
        for relation in _values(source, "moves.relations"):
            with source.cursor("leaving", row_factory=scalar_row) as leaving:
                leaving.itersize = _ROWS
                leaving.execute(statement("moves.rows"), {"session": session, "relation": relation})
                for n, text in enumerate(leaving):
                    yield relation, n, text


def digests(conn: Connection, move: UUID) -> Mapping[str, str]:
    """Return the digests of the rows that have arrived, by table."""
    return scalar(conn, statement("moves.digests"), {"move": move}, dict)


def number(conn: Connection, move: UUID) -> Mapping[str, int]:
    """Choose new numbers for the arrived rows; return the offset that is added to the old ones, by table."""
    for relation in _values(conn, "moves.counted"):
        conn.execute(statement("moves.number"), {"move": move, "relation": relation})
    return scalar(conn, statement("moves.offsets"), {"move": move}, dict)


def rehearse(conn: Connection, move: UUID) -> None:
    """Unpack an arrival and undo it, so that whatever refuses it is known while the session is whole at its source."""
    with conn.transaction(force_rollback=True):
        unpack(conn, move)
        conn.execute("set constraints all immediate")


def depart(conn: Connection, move: UUID, arrived: Mapping[str, str]) -> datetime:
    """Delete the session at its source, in the commit that decides; return when.

    Raise MoveOver if the move was called off, SessionRunning, or SessionChanged if it is not what has arrived. Then
    nothing has changed.
    """
    return scalar(conn, statement("moves.depart"), {"move": move, "digests": Jsonb(dict(arrived))}, datetime)


def unpack(conn: Connection, move: UUID) -> SessionId | None:
    """Let an arrived session live, if it does not yet; return its id, None if it has not arrived here."""
    row = conn.execute(statement("moves.unpack"), {"move": move}).fetchone()
    return row[0] if row else None


def end(conn: Connection, move: UUID) -> None:
    """Store at the source that the session lives at its destination."""
    conn.execute(statement("moves.end"), {"move": move})


def call_off(conn: Connection, move: UUID) -> str:
    """Keep the session from departing by this move; return what holds: departed, called off, or unknown here."""
    return scalar(conn, statement("moves.call_off"), {"move": move}, str)


def discard(conn: Connection, move: UUID) -> bool:
    """Throw away the rows that arrived by a move that was called off; return whether there were any."""
    return scalar(conn, statement("moves.discard"), {"move": move}, bool)


def unfinished(conn: Connection) -> list[Departure]:
    """Return the moves from this database that did not end, the oldest first; somebody may still be at it."""
    with conn.cursor(row_factory=class_row(Departure)) as cursor:
        return cursor.execute(statement("moves.unfinished")).fetchall()


def arrivals(conn: Connection) -> list[Arrival]:
    """Return the sessions that are sealed in this database, the oldest first."""
    with conn.cursor(row_factory=class_row(Arrival)) as cursor:
        return cursor.execute(statement("moves.arrivals")).fetchall()


def departed(conn: Connection, prefix: str) -> Departure | None:
    """Return where the session has gone whose id is this or begins with it; None if none has, or several have."""
    ids = beginning_with(prefix)
    if ids is None:
        return None
    with conn.cursor(row_factory=class_row(Departure)) as cursor:
        found = cursor.execute(statement("moves.departed"), {"first": ids[0], "last": ids[1]}).fetchall()
    return found[0] if len({one.session_id for one in found}) == 1 else None


def _place(conn: Connection) -> str:
    """Return the place of the source, for messages: its errors would else be taken for the destination's."""
    return "" if conn.closed else describe(conn.info.dsn)


def _values(conn: Connection, name: str) -> list[Any]:
    with conn.cursor(row_factory=scalar_row) as cursor:
        return cursor.execute(statement(name)).fetchall()
