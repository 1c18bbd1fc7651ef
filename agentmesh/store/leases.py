"""Leases: below which paths of a shared directory one agent writes at a time. There is no clock in it.

A session lists path prefixes. The first agent that writes below one holds it until its turn ends, its work is merged,
or it dies; each of these gives it up in its own commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from agentmesh.domain.ids import SessionId
from agentmesh.domain.text import storable
from agentmesh.domain.workspaces import FileLease
from agentmesh.sql import statement
from agentmesh.store.call import Lease, caller


def take(conn: Connection, lease: Lease, path: str) -> FileLease | None:
    """Return the lease of this path. The caller's agent holds it from now on (``mine``), or another agent has it.

    None: nobody needs a lease for it, because no prefix of the session fits or the agent has a tree of its own. The
    path is relative to the session's directory. The longest prefix counts; ``"."`` is the whole directory. Raise
    Fenced.
    """
    values = {"agent": lease.agent_id, "path": storable(path), **caller(lease)}
    with conn.cursor(row_factory=class_row(FileLease)) as cursor:
        return cursor.execute(statement("leases.take"), values).fetchone()


def held(conn: Connection, workspace: UUID) -> list[FileLease]:
    """Return the leases in a workspace that are held now; ``mine`` is false."""
    with conn.cursor(row_factory=class_row(FileLease)) as cursor:
        return cursor.execute(statement("leases.held"), {"workspace": workspace}).fetchall()


def set_prefixes(conn: Connection, session: SessionId, prefixes: Sequence[str]) -> None:
    """Say below which paths of its directory a session asks for leases. Those that are held stay held."""
    conn.execute(statement("leases.set_prefixes"), {"session": session, "prefixes": [storable(p) for p in prefixes]})
