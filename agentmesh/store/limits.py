"""Limits of a session besides its budget: what they are, how much is used, and changing them."""

from __future__ import annotations

from collections.abc import Mapping

from psycopg import Connection
from psycopg.rows import class_row

from agentmesh.domain.ids import SessionId
from agentmesh.domain.limits import Limit
from agentmesh.sql import statement
from agentmesh.store.jsonb import jsonb


def view(conn: Connection, session: SessionId) -> list[Limit]:
    """Return the limits of a session."""
    with conn.cursor(row_factory=class_row(Limit)) as cursor:
        return cursor.execute(statement("limits.view"), {"session": session}).fetchall()


def set_limits(conn: Connection, session: SessionId, changes: Mapping[str, int | None]) -> None:
    """Change limits: ``{"max_turns": 50}``; None takes one away. Raise BadArgument for a value that none can have.

    ``max_seconds`` counts from now on.
    """
    conn.execute(statement("limits.set"), {"session": session, "changes": jsonb(dict(changes))})
