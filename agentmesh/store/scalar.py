"""One statement that returns one value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, LiteralString, TypeVar

from psycopg import Connection
from psycopg.rows import scalar_row

Value = TypeVar("Value")


def scalar(conn: Connection, query: LiteralString, values: Mapping[str, Any], kind: type[Value]) -> Value:
    """Run the statement and return its one value, which is of this kind."""
    with conn.cursor(row_factory=scalar_row) as cursor:
        value = cursor.execute(query, values).fetchone()
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind.__name__}, got {value!r}")
    return value
