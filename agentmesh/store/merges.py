"""Merges: how the files of one workspace get into the one that it was made from, or back. All of it or nothing.

``begin`` stores the plan, then the target's files are written, then ``end`` makes it true in one commit. A worker that
finds a merge unfinished, and nobody at work on it, finishes it from the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString, cast
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.text import storable
from agentmesh.domain.workspaces import Merge
from agentmesh.sql import statement
from agentmesh.store.call import Lease, caller, typed_row
from agentmesh.store.jsonb import jsonb


@dataclass(frozen=True, slots=True)
class Sides:
    """The workspaces that a merge is between."""

    target: UUID
    source: UUID
    base: str | None
    """The tree that both have in common."""
    ours: str | None
    """The target's newest tree; take a new snapshot before you merge, as of ``theirs``."""
    theirs: str | None
    """The source's."""
    is_up: bool
    """Whether the source is the one that was made from the target."""


@dataclass(frozen=True, slots=True)
class MergePlan:
    """A merge that was made in memory."""

    target_agent: AgentId | None
    """The agent that works in the target; None: nobody does, or a person means the origin of the source."""
    source_agent: AgentId
    base: str
    ours: str
    theirs: str
    result: str | None
    """None only for a refusal."""
    files: Sequence[tuple[str, str, int, int]] = ()
    """What it changes in the target: path, status, lines added, lines removed."""
    check_command: str | None = None
    check_exit: int | None = None


def sides(conn: Connection, target_agent: AgentId | None, source_agent: AgentId) -> Sides:
    """Return the two workspaces of a merge; raise NotMergeable with the reason if they cannot be merged.

    They can be if one was made from the other. A workspace that was removed counts as the one that it was made from.
    Without a target's agent it is the workspace that the source was made from.
    """
    values = {"target": target_agent, "source_agent": source_agent}
    with conn.cursor(row_factory=class_row(Sides)) as cursor:
        return cast(Sides, cursor.execute(statement("merges.sides"), values).fetchone())


def above(conn: Connection, agent: AgentId) -> AgentId | None:
    """Return the nearest ancestor of an agent that works in the files which the agent's own tree was made from.

    It may be dead. None: none does, as for the root of a forked session. Raise NotMergeable if the agent has no tree of
    its own.
    """
    (found,) = conn.execute(statement("merges.above"), {"agent": agent}).fetchone() or (None,)
    return None if found is None else AgentId(found)


def begin(conn: Connection, plan: MergePlan, lease: Lease | None = None) -> Merge:
    """Store a merge that is about to be written into the target; return its row.

    With a lease it is the work of a tool call: the same call again returns the same merge, in whatever state it is by
    now. Without one a person asked; the same plan again, while it is unfinished, returns the same merge.

    Raise TreeMoved if a head or the base is no longer what the plan says: take snapshots and merge again. Raise
    MergeBusy if another merge into the target, or between the same two the other way, is being written; NotMergeable as
    ``sides``; CallClosed; Fenced. The agents of both sides may be dead.
    """
    return _changed(conn, statement("merges.begin"), {"plan": _json(plan), **_asker(lease)})


def end(
    conn: Connection,
    merge: int,
    lease: Lease | None = None,
    *,
    result: Mapping[str, Any] | None = None,
    snapshot: Mapping[str, Any] | None = None,
    ref: str | None = None,
    told_source: str | None = None,
    told_target: str | None = None,
) -> Merge:
    """Record that the merge is in the target's files; return its row. In one commit:

    the target's new snapshot (kind merge, shown as the source's agent's work), the base of the own workspace, mail to
    the agents of both sides, the result of the call, the end of the source's agent's leases. An idle agent gets
    its mail as a row of its conversation, and is not woken by it.

    ``snapshot`` is an ``entry`` of the files on disk now; without it the plan's result is taken, kept by ``ref``. Raise
    TreeMoved if the target has another snapshot since ``begin``, and ``snapshot`` does not begin at that: look again.
    ``told_source`` and ``told_target`` are the words of the mails; None sends none. An agent that asked by a call gets
    none. Without a lease, or if the call has its result by now, nothing is written for the call. A merge that is done
    stays as it is; raise MergeOver if it was refused.
    """
    values = {
        "merge": merge,
        "result": None if result is None else jsonb(dict(result)),
        "snapshot": None if snapshot is None else jsonb(dict(snapshot)),
        "ref": ref,
        "told_source": _text(told_source),
        "told_target": _text(told_target),
        **_asker(lease),
    }
    return _changed(conn, statement("merges.end"), values)


def refused(
    conn: Connection,
    plan: MergePlan | int,
    reason: str,
    conflicts: Sequence[Mapping[str, Any]] = (),
    lease: Lease | None = None,
    *,
    result: Mapping[str, Any] | None = None,
    told: str | None = None,
) -> Merge:
    """Record that a merge was refused: nothing of the target changes. Return its row.

    ``plan`` is a merge that was not begun, or the id of one that was: then none of its files may be in the target.
    ``told`` is mail from the asker to the agent whose own tree does not fit; it wakes that agent, because it has the
    context to repair it. An agent that asked itself gets none. ``result`` is the result of the call. The same call
    again, or a person's same merge, returns the same row and tells nobody twice. Raise MergeOver if the merge is done;
    Fenced.
    """
    values = {
        "merge": plan if isinstance(plan, int) else None,
        "plan": None if isinstance(plan, int) else _json(plan),
        "reason": storable(reason),
        "conflicts": jsonb([dict(conflict) for conflict in conflicts]),
        "result": None if result is None else jsonb(dict(result)),
        "told": _text(told),
        **_asker(lease),
    }
    return _changed(conn, statement("merges.refused"), values)


def of_call(conn: Connection, agent: AgentId, seq: int, ordinal: int) -> Merge | None:
    """Return the merge that a tool call asked for, if it has got that far."""
    values = {"agent": agent, "seq": seq, "ordinal": ordinal}
    return _first(_merges(conn, statement("merges.of_call"), values))


def get(conn: Connection, merge: int) -> Merge | None:
    """Return a merge by its id."""
    return _first(_merges(conn, statement("merges.by_id"), {"merge": merge}))


def unfinished(conn: Connection, host: str, os_user: str) -> list[Merge]:
    """Return merges into directories of this host that are being written, oldest first.

    The process that writes one holds the lock of the target's folder; finish one whose lock is free.
    """
    return _merges(conn, statement("merges.unfinished"), {"host": host, "os_user": os_user})


def into(conn: Connection, workspace: UUID, after_snapshot: int = 0) -> list[Merge]:
    """Return the merges into a workspace whose files came with a snapshot newer than this one and are still there."""
    return _merges(conn, statement("merges.into"), {"workspace": workspace, "after": after_snapshot})


def undone_by(conn: Connection, snapshot: int) -> list[Merge]:
    """Return the merges that the ``undo`` snapshot of this id has undone, for redo."""
    return _merges(conn, statement("merges.undone_by"), {"snapshot": snapshot})


def listing(conn: Connection, session: SessionId, limit: int = 200) -> list[Merge]:
    """Return the merges of a session, newest first."""
    return _merges(conn, statement("merges.listing"), {"session": session, "limit": limit})


def _asker(lease: Lease | None) -> dict[str, Any]:
    return {"by": None if lease is None else lease.agent_id, **caller(lease)}


def _json(plan: MergePlan) -> Jsonb:
    return jsonb(
        {
            "target_agent": None if plan.target_agent is None else str(plan.target_agent),
            "source_agent": str(plan.source_agent),
            "base": plan.base,
            "ours": plan.ours,
            "theirs": plan.theirs,
            "result": plan.result,
            "files": [list(file) for file in plan.files],
            "check_command": plan.check_command,
            "check_exit": plan.check_exit,
        }
    )


def _text(told: str | None) -> str | None:
    return None if told is None else storable(told)


def _changed(conn: Connection, query: LiteralString, values: Mapping[str, Any]) -> Merge:
    (merge,) = _merges(conn, query, values)
    return merge


def _merges(conn: Connection, query: LiteralString, values: Mapping[str, Any]) -> list[Merge]:
    with conn.cursor(row_factory=typed_row(Merge)) as cursor:
        return cursor.execute(query, values).fetchall()


def _first(found: Sequence[Merge]) -> Merge | None:
    return found[0] if found else None
