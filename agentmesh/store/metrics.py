"""Figures of the whole mesh for monitoring."""

from __future__ import annotations

from typing import NamedTuple

from psycopg import Connection
from psycopg.rows import class_row

from agentmesh.sql import statement


class MeshFigures(NamedTuple):
    """How much waits in the whole mesh, whichever worker looks."""

    waits: int
    queued_agents: int
    """Running agents without a worker, except those inside a wait, which need none."""
    queued_seconds: float
    """Since when the oldest of them is queued; 0 if there is none."""
    unread_mail: int
    """Mail that running agents have not read."""
    unread_seconds: float
    """Age of the oldest of it; 0 if there is none."""
    notify_queue: float
    """The used share of the server's queue of notifications, from 0 to 1."""


def mesh(conn: Connection) -> MeshFigures:
    """Return the figures."""
    with conn.cursor(row_factory=class_row(MeshFigures)) as cursor:
        (found,) = cursor.execute(statement("metrics.mesh")).fetchall()
    return found
