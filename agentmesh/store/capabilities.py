"""What model servers can, as all workers know it."""

from __future__ import annotations

from psycopg import Connection
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from agentmesh.domain.rows import Capability
from agentmesh.domain.text import storable
from agentmesh.sql import statement


def learn(conn: Connection, found: Capability, set_by: str) -> None:
    """Tell all workers what a server was seen to do; what ``found`` leaves open stays as it was."""
    known = {name: value for name, value in found._asdict().items() if value is not None}
    key = {name: storable(str(known.pop(name))) for name in ("provider", "address", "model")}
    conn.execute(statement("capabilities.learn"), {**key, "facts": Jsonb(known), "set_by": storable(set_by)})


def current(conn: Connection) -> list[Capability]:
    """Return the known capabilities of all servers."""
    with conn.cursor(row_factory=class_row(Capability)) as cursor:
        return cursor.execute(statement("capabilities.current")).fetchall()
