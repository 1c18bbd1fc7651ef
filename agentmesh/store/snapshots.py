"""Snapshots: what was in a workspace, when, and after which call. The tree and its ref exist before the row does.

The snapshot of a call is stored with its result, by ``steps.begin_step`` and ``steps.finish_calls``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.text import storable
from agentmesh.domain.workspaces import Kept, Snapshot
from agentmesh.sql import statement
from agentmesh.store.call import Lease, bigint, caller, scalar
from agentmesh.store.jsonb import jsonb

MOST: Final = 2000
"""How many changed files of one snapshot get a row."""


def entry(
    tree: str,
    before: str | None,
    ref: str | None,
    changes: Iterable[tuple[str, str, int, int]] = (),
    left_out: Iterable[str] = (),
    outside: Iterable[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return a snapshot in the form that the database takes.

    ``changes`` against ``before``: path, status (added, changed, removed), lines added, lines removed. ``outside`` are
    other entries, with what somebody else had changed before a call. They are stored first. An entry without a tree has
    only these: the call itself changed nothing.
    """
    listed = [(storable(path), status, added, removed) for path, status, added, removed in changes]
    made: dict[str, Any] = {"tree": tree, "before": before, "ref": ref, "files": len(listed), "changes": listed[:MOST]}
    made |= {"added": sum(added for _, _, added, _ in listed), "removed": sum(removed for *_, removed in listed)}
    left, others = [storable(path) for path in left_out], [dict(one) for one in outside]
    return made | ({"left_out": left} if left else {}) | ({"outside": others} if others else {})


def record(
    conn: Connection,
    workspace: UUID,
    kind: str,
    snapshot: Mapping[str, Any],
    *,
    agent: AgentId | None = None,
    lease: Lease | None = None,
    said: str | None = None,
    undoes: Sequence[int] = (),
    redoes: Sequence[int] = (),
) -> int:
    """Store a snapshot (an ``entry``) that belongs to no call, and return its id.

    ``kind`` is base, outside, undo, redo or final. It becomes the newest of its workspace. The same again, right after
    itself, is stored once. ``agent`` is the agent whose files they are, if it is one agent's. ``said`` becomes an event
    in that agent's transcript that no model sees, and tells what was undone. ``undoes`` and ``redoes`` are merges into
    the workspace that the new tree no longer has, or has again: their state and the base of their own workspace follow.

    Raise TreeMoved if the newest snapshot is no longer ``before``: look again. Raise UnknownWorkspace. With a lease
    raise Fenced.
    """
    values = {
        "workspace": workspace,
        "kind": kind,
        "snapshot": jsonb(dict(snapshot)),
        "agent": agent,
        "said": None if said is None else storable(said),
        "undoes": list(undoes),
        "redoes": list(redoes),
        **caller(lease),
    }
    return scalar(conn, statement("snapshots.record"), values, int)


def get(conn: Connection, snapshot: int) -> Snapshot | None:
    """Return a snapshot by its id."""
    return _one(conn.cursor(row_factory=class_row(Snapshot)).execute(statement("snapshots.by_id"), {"id": snapshot}))


def newest_before(conn: Connection, agent: AgentId, row: int) -> Snapshot | None:
    """Return the agent's workspace as it was when this row was written, or before the step that has the row.

    That is the newest snapshot by then. Before the first snapshot nobody here had changed a file, so then it is the
    first one. None: the workspace has no snapshot at all. Look at ``freed_at``: its tree may be gone. Raise BadArgument
    if the agent has no such row; 0 is before its first.
    """
    values = {"agent": agent, "row": bigint(row, "the row")}
    return _one(conn.cursor(row_factory=class_row(Snapshot)).execute(statement("snapshots.newest_before"), values))


def newest(conn: Connection, workspace: UUID) -> Snapshot | None:
    """Return the newest snapshot of a workspace."""
    values = {"workspace": workspace}
    return _one(conn.cursor(row_factory=class_row(Snapshot)).execute(statement("snapshots.newest"), values))


def is_stored(conn: Connection, workspace: UUID, ref: str) -> bool:
    """Return whether a snapshot of a workspace has this ref, or had it before it was freed."""
    return scalar(conn, statement("snapshots.is_stored"), {"workspace": workspace, "ref": ref}, bool)


def since(conn: Connection, workspace: UUID, snapshot: int, limit: int = 1000) -> list[Snapshot]:
    """Return the snapshots of a workspace that are newer than this one, oldest first."""
    values = {"workspace": workspace, "after": snapshot, "limit": limit}
    with conn.cursor(row_factory=class_row(Snapshot)) as cursor:
        return cursor.execute(statement("snapshots.since"), values).fetchall()


def of_agent(conn: Connection, agent: AgentId, after: int = 0, limit: int = 1000) -> list[Snapshot]:
    """Return the newest snapshots that show an agent's own work, newest first.

    ``after``: only of steps after this row of its. What the files were before its first such step is that one's
    ``before``.
    """
    values = {"agent": agent, "after": after, "limit": limit}
    with conn.cursor(row_factory=class_row(Snapshot)) as cursor:
        return cursor.execute(statement("snapshots.of_agent"), values).fetchall()


def over(conn: Connection, workspace: UUID, keep: int, limit: int = 1000) -> list[Kept]:
    """Return the refs of a workspace beyond its newest ``keep``, oldest first: call ``freed``, then remove them.

    Trees that something still needs are never among them: heads, bases, what is to be made, merges being written.
    """
    values = {"workspace": workspace, "keep": keep, "limit": limit}
    with conn.cursor(row_factory=class_row(Kept)) as cursor:
        return cursor.execute(statement("snapshots.over"), values).fetchall()


def refs(conn: Connection, session: SessionId, *, reaped_only: bool = False) -> list[Kept]:
    """Return the refs of a session that are still there, to remove them with it: read it before the rows go.

    ``reaped_only``: only refs of removed workspaces whose agents are all reaped, for reap.
    """
    values = {"session": session, "reaped_only": reaped_only}
    with conn.cursor(row_factory=class_row(Kept)) as cursor:
        return cursor.execute(statement("snapshots.refs"), values).fetchall()


def freed(conn: Connection, ids: Sequence[int]) -> None:
    """Record that the refs of these snapshots go. Call it before they do, so that no row names a tree that is lost."""
    conn.execute(statement("snapshots.freed"), {"ids": list(ids)})


def _one(cursor: Any) -> Snapshot | None:
    with cursor:
        found: Snapshot | None = cursor.fetchone()
        return found
