"""One statement that returns one value, prepared once on a connection: for what is on the way of every wake-up.

A cursor of psycopg finds out at each execution how to write each parameter and how to read each column. In a process
that has just been woken that takes longer than hot loops show: a quarter of a millisecond. Here both are known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, LiteralString, TypeVar
from uuid import UUID

import psycopg
from psycopg import Connection, generators
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.rows import scalar_row

from agentmesh.store.pool import PREPARE_AFTER, KeptConnection

Value = TypeVar("Value")

_NAMED: Final = re.compile(r"%\((\w+)\)s")


def value(
    conn: Connection, query: LiteralString, values: Mapping[str, Any], read: Callable[[bytes], Value]
) -> Value | None:
    """Run the statement and return its one value, which ``read`` makes of its text; None for null.

    Values are ids, numbers, text and None.
    """
    if not isinstance(conn, KeptConnection) or not _is_worth_it(conn, query):
        with conn.cursor(row_factory=scalar_row) as cursor:
            return cursor.execute(query, values).fetchone()
    text, names = _numbered(query)
    parameters = [_written(values[name]) for name in names]
    prepared = conn.prepared.get(query)
    if prepared is None:
        prepared = b"agentmesh_%d" % len(conn.prepared)
        conn.pgconn.send_prepare(prepared, text)
        _result(conn)
        conn.prepared[query] = prepared
    conn.pgconn.send_query_prepared(prepared, parameters)
    found = _result(conn).get_value(0, 0)
    return None if found is None else read(found)


def _is_worth_it(conn: KeptConnection, query: LiteralString) -> bool:
    """Tell whether the statement has been run often enough here; never where others use the server's process too."""
    if query in conn.prepared:
        return True
    conn.executed[query] += 1
    return conn.prepare_threshold is not None and conn.executed[query] > PREPARE_AFTER


@cache
def _numbered(query: LiteralString) -> tuple[bytes, tuple[str, ...]]:
    """Return the statement with ``$1`` for ``%(name)s``, and the names in their order."""
    names = tuple(dict.fromkeys(_NAMED.findall(query)))
    return _NAMED.sub(lambda named: f"${names.index(named[1]) + 1}", query).encode(), names


def _written(value: UUID | str | int | None) -> bytes | None:
    """Return a parameter as text."""
    if value is None:
        return None
    if isinstance(value, UUID):
        return value.hex.encode()
    if isinstance(value, int):
        return b"%d" % value
    if "\0" in value:  # libpq would cut it there
        raise psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")
    return value.encode()


def _result(conn: KeptConnection) -> Any:
    """Wait for the answer, as a cursor does: an interrupt of the process cancels the statement."""
    # A second one says that the commit failed, or that the session ended in it: then the first is worth nothing.
    results = conn.wait(generators.execute(conn.pgconn))
    for result in results:
        if result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            raise error_from_result(result)
    return results[0]
