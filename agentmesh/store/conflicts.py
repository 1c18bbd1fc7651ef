"""Conflicts while they grow: files that two trees of one origin changed in ways that do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.text import storable
from agentmesh.domain.workspaces import Conflict
from agentmesh.sql import statement


def note(conn: Connection, one: UUID, other: UUID, paths: Sequence[str], second: AgentId) -> None:
    """Store the files in which two workspaces now conflict: all of them, after a look at both.

    Those that were stored and are not among them are over. ``second`` is the agent whose new snapshot was looked at.
    """
    values = {"one": one, "other": other, "paths": [storable(path) for path in paths], "second": second}
    conn.execute(statement("conflicts.note"), values)


def untold(conn: Connection, agent: AgentId) -> list[Conflict]:
    """Return conflicts that an agent is still to be told, oldest first. One that is over is left out."""
    with conn.cursor(row_factory=class_row(Conflict)) as cursor:
        return cursor.execute(statement("conflicts.untold"), {"agent": agent}).fetchall()


def told(conn: Connection, ids: Sequence[int]) -> None:
    """Record that these were told, with the next result of their agent: once for a pair and a file."""
    conn.execute(statement("conflicts.told"), {"ids": list(ids)})


def listing(conn: Connection, session: SessionId) -> list[Conflict]:
    """Return the conflicts of a session that are not over, oldest first."""
    with conn.cursor(row_factory=class_row(Conflict)) as cursor:
        return cursor.execute(statement("conflicts.listing"), {"session": session}).fetchall()
