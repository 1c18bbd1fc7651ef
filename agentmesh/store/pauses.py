"""Pauses of model servers, which all workers share."""

from __future__ import annotations

from psycopg import Connection
from psycopg.rows import class_row

from agentmesh.domain.rows import Pause
from agentmesh.domain.text import storable
from agentmesh.sql import statement


def pause(conn: Connection, found: Pause, set_by: str) -> None:
    """Tell all workers to leave a model alone; a pause that ends later stays."""
    values = {
        "provider": storable(found.provider),
        "model": storable(found.model),
        "seconds": found.seconds,
        "reason": storable(found.reason),
        "set_by": storable(set_by),
    }
    conn.execute(statement("pauses.pause"), values)


def current(conn: Connection) -> list[Pause]:
    """Return the pauses that have not ended."""
    with conn.cursor(row_factory=class_row(Pause)) as cursor:
        return cursor.execute(statement("pauses.current")).fetchall()
