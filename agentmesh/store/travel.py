"""Going back in time: agents as they were, and forks that begin at an earlier row."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row

from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.rows import AgentView
from agentmesh.domain.states import Kind
from agentmesh.domain.text import storable
from agentmesh.sql import statement
from agentmesh.store import agents
from agentmesh.store.call import bigint, scalar, typed_row


@dataclass(frozen=True, slots=True)
class Forked:
    """A fork that begins at an earlier row."""

    id: AgentId
    name: str
    session_id: SessionId
    upto: int
    """The last row of its source that it inherits: the one asked for, or the last before the step that has it."""


@dataclass(frozen=True, slots=True)
class AgentThen:
    """An agent as it was at a time."""

    view: AgentView
    last_seq: int
    """Its newest row, which ``fork_at`` goes back to."""


@dataclass(frozen=True, slots=True)
class Point:
    """A place in a conversation to go back to: before a message, or after an answer."""

    seq: int
    """The seq of the message or the answer."""
    kind: Kind
    text: str
    """The beginning of its text. Foreign text."""

    @property
    def upto(self) -> int:
        """The last row to inherit."""
        return self.seq if self.kind == Kind.ASSISTANT else self.seq - 1


def fork_at(
    conn: Connection,
    parent: AgentId,
    name: str,
    at: int,
    prompt: str | None = None,
    *,
    workspace: str | None = None,
    base: str | None = None,
) -> Forked:
    """Make a child of a living agent that inherits up to this row.

    With a tree of its own it has the files as they were at that row (see ``snapshots.newest_before``), unless ``base``
    names another tree. Raise as ``agents.fork`` does, BadArgument, and SnapshotGone if that snapshot was freed.
    """
    values = {"parent": parent, "name": storable(name), "prompt": _storable(prompt), "at": bigint(at, "the row")}
    values |= {"workspace": workspace, "base": base}
    child = agents.get(conn, AgentId(scalar(conn, statement("travel.fork"), values, UUID)))
    return Forked(child.id, child.name, child.session_id, child.forked_at or 0)


def fork_session(
    conn: Connection, agent: AgentId, at: int, prompt: str | None = None, *, workspace: str | None = None
) -> Forked:
    """Begin a session whose root has the context of this agent, dead or alive, at this row.

    Its directory is the same. ``workspace="own"`` gives its root a tree of its own, with the files of that row. Raise
    BadArgument, NoTree or SnapshotGone.
    """
    values = {"agent": agent, "at": bigint(at, "the row"), "prompt": _storable(prompt), "workspace": workspace}
    root = agents.get(conn, AgentId(scalar(conn, statement("travel.fork_session"), values, UUID)))
    return Forked(root.id, root.name, root.session_id, scalar(conn, statement("travel.copied"), {"root": root.id}, int))


def tree_at(conn: Connection, session: SessionId, at: datetime) -> list[AgentThen]:
    """Return the agents of a session as they were, in the form of ``agents.view``, as far as their rows tell."""
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(statement("travel.agents"), {"session": session, "at": at}).fetchall()
    by_id = {row["id"]: row for row in rows}
    for row in rows:
        above = by_id.get(row["parent_id"])
        row["path"] = f"{above['path']}/{row['name']}" if above else row["name"]
        row |= {"tree_tokens": row["tokens"], "tree_cost": row["cost_usd"], "tree_unpriced": row["unpriced_calls"]}
    for row in reversed(rows):
        if above := by_id.get(row["parent_id"]):
            for figure in ("tree_tokens", "tree_cost", "tree_unpriced"):
                above[figure] += row[figure]
    return [_then(row) for row in rows]


def points(conn: Connection, agent: AgentId, limit: int = 200) -> list[Point]:
    """Return the places to go back to in an agent's own conversation, newest first."""
    with conn.cursor(row_factory=typed_row(Point)) as cursor:
        return cursor.execute(statement("travel.points"), {"agent": agent, "limit": limit}).fetchall()


def now(conn: Connection) -> datetime:
    """Return the time of the database, which all its rows use."""
    return scalar(conn, statement("travel.now"), {}, datetime)


def _then(row: dict[str, Any]) -> AgentThen:
    last_seq, own, tree = (row.pop(name) for name in ("last_seq", "unpriced_calls", "tree_unpriced"))
    tree_cost = row.pop("tree_cost")
    row |= {"cost_usd": _known(row["cost_usd"], own), "tree_cost_usd": _known(tree_cost, tree)}
    return AgentThen(AgentView(**row, worker_id=None), last_seq)


def _known(cost: Decimal, unpriced: int) -> Decimal | None:
    """Return a cost as ``v_agents`` does: None if no price is known."""
    return cost if not unpriced or cost > 0 else None


def _storable(prompt: str | None) -> str | None:
    return None if prompt is None else storable(prompt)
