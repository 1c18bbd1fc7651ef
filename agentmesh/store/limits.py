"""Limits of a session besides its budget: their values, how much is used, and changing them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from psycopg import Connection
from psycopg.rows import class_row

from agentmesh.domain.ids import SessionId
from agentmesh.domain.limits import Limit
from agentmesh.sql import statement
from agentmesh.store.call import Lease, caller, scalar
from agentmesh.store.jsonb import jsonb


class OfCall(NamedTuple):
    """Whether a model call that has waited may still send a request."""

    refused: Mapping[str, str] | None
    """The limit, the error and the hint if it may not, otherwise None."""
    left: float | None
    """Seconds until a limit of time forbids it; None if none does."""


def view(conn: Connection, session: SessionId) -> list[Limit]:
    """Return the limits of a session."""
    with conn.cursor(row_factory=class_row(Limit)) as cursor:
        return cursor.execute(statement("limits.view"), {"session": session}).fetchall()


def set_limits(conn: Connection, session: SessionId, changes: Mapping[str, int | None]) -> None:
    """Change limits: ``{"max_turns": 50}``; None takes one away. Raise BadArgument for a value that none can have.

    ``max_seconds`` counts from now on.
    """
    conn.execute(statement("limits.set"), {"session": session, "changes": jsonb(dict(changes))})


def of_call(conn: Connection, lease: Lease) -> OfCall:
    """Return the limits' answer to the agent's model call, after it has waited."""
    found = scalar(conn, statement("limits.of_call"), {"agent": lease.agent_id, **caller(lease)}, dict)
    return OfCall(found.get("refused"), found.get("left"))
