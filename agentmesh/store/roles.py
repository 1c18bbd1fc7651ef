"""The roles with least rights: whether this server has them, and giving them their rights in this database.

What each may do is written once, in the SQL function ``agentmesh.grant_roles``. Roles belong to the server, but their
rights belong to a database. So a schema can exist before its roles, and a dump restored elsewhere comes without them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from psycopg import Connection
from psycopg.rows import class_row

from agentmesh.sql import statement
from agentmesh.store.reader import READER

WORKER: Final = "agentmesh_worker"
"""Runs sessions, by the verbs and what workers call; changes nothing in the schema. Logins are made its members."""
PERSON: Final = "agentmesh_person"
"""Does what a worker may, and what only people decide. Logins are made its members."""
MOVING: Final = (
    "begin_move",
    "call_off_move",
    "depart",
    "end_move",
    "arrive",
    "number_arrival",
    "unpack",
    "discard_arrival",
)
"""Functions that move a session to another database. They have the rights of the schema's owner."""
FOR_PERSONS: Final = (
    "start_session",
    "end_session",
    "set_mode",
    "set_budget",
    "set_limits",
    "answer",
    "allow",
    "forget_rules",
    "set_endpoints",
    "forget_bills",
    "rename",
    "set_leases",
    "workspace_moved",
    "place_root",
    "pin_session",
    *MOVING,
)
"""Functions that decide what agents may do and spend, their names, what stays and where. No worker may call them."""

_MADE_BY: Final = {
    READER: f"create role {READER} login;  -- reads the views; `agentmesh sql` logs in as it",
    WORKER: f"create role {WORKER} nologin;  -- runs agents; for logins: create role NAME login in role {WORKER}",
    PERSON: f"create role {PERSON} nologin in role {WORKER};  -- for people: create role NAME login in role {PERSON}",
}


@dataclass(frozen=True, slots=True)
class _Role:
    name: str
    exists: bool
    granted: bool
    mine: bool


def settle(conn: Connection) -> list[str]:
    """Give the existing roles the rights that they lack here; return the statements that make the missing roles.

    Only the schema's owner can give rights; for others nothing is changed.
    """
    values = {
        "names": list(_MADE_BY),
        "reader": READER,
        "worker": WORKER,
        "person": PERSON,
        "persons": list(FOR_PERSONS),
    }
    with conn.cursor(row_factory=class_row(_Role)) as cursor:
        found = cursor.execute(statement("health.roles"), values).fetchall()
    if any(role.mine and role.exists and not role.granted for role in found):
        conn.execute(statement("health.grant_roles"))
    return [_MADE_BY[role.name] for role in found if not role.exists]
