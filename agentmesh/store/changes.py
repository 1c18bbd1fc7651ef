"""What agents changed in files: as snapshots recorded it, and otherwise as their calls of edit and write did."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row, dict_row

from agentmesh.domain.changes import Change, lines_of
from agentmesh.domain.errors import UnknownAgent
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.text import one_line, visible
from agentmesh.domain.workspaces import FileTotal
from agentmesh.sql import statement
from agentmesh.store.call import bigint

MOST: Final = 1000
"""How many changes are read at once."""
_LARGEST = 1 << 20
"""The content of a write is read only if the arguments of the call have at most this many bytes."""
_PATH = 400
"""How many characters of a path are shown."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A file that a call changed, as its snapshot recorded it: two trees have the text."""

    agent_id: AgentId
    name: str
    seq: int
    tool: str
    path: str
    status: str
    added: int
    removed: int
    at: datetime
    before: str
    tree: str


class FilesOf(NamedTuple):
    """Where an agent works, as a reader of its changes needs to know it."""

    id: UUID
    kind: str
    base: str | None
    head: str | None
    workdir: str
    """The session's, in whose repository all trees are."""
    host: str
    os_user: str


class Version(NamedTuple):
    """A snapshot of a workspace, and whose work it shows."""

    id: int
    tree: str
    kind: str
    agent_id: AgentId | None
    name: str | None
    seq: int | None
    tool: str
    at: datetime
    source: UUID | None
    """For a merge: the workspace whose files came."""
    source_upto: int | None
    """For a merge: the newest snapshot of that workspace then."""


def newest(conn: Connection, agent: AgentId, limit: int = MOST, after: int | None = None) -> list[Change]:
    """Return the newest changes, by edit and write, of an agent and of all below it that no snapshot has; oldest first.

    ``after``: only those after this row of the agent.
    """
    values = {"agent": agent, "largest": _LARGEST, "limit": limit, "after": after}
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(statement("changes.newest"), values).fetchall()
    return [_change(row) for row in reversed(rows)]


def require_row(conn: Connection, agent: AgentId, row: int) -> None:
    """Raise BadArgument if an agent has no such row."""
    conn.execute(statement("changes.require_row"), {"agent": agent, "row": bigint(row, "the row")})


def totals(conn: Connection, agent: AgentId, since: int | None = None, limit: int = MOST) -> list[FileTotal]:
    """Return the changes by calls of an agent and of all below it, summed by agent and file; the newest first.

    By bash too, as far as snapshots were taken. ``since``: only by results after this row of the agent's, and by agents
    below it after the time of that row.
    """
    values = {"agent": agent, "since": since, "limit": limit}
    with conn.cursor(row_factory=class_row(FileTotal)) as cursor:
        return cursor.execute(statement("changes.totals"), values).fetchall()


def recorded(conn: Connection, agent: AgentId, limit: int = MOST, after: int | None = None) -> list[Recorded]:
    """Return the newest changes of an agent and of all below it that snapshots recorded, oldest first."""
    values = {"agent": agent, "limit": limit, "after": after}
    with conn.cursor(row_factory=class_row(Recorded)) as cursor:
        return cursor.execute(statement("changes.snapshots"), values).fetchall()[::-1]


def files_of(conn: Connection, agent: AgentId) -> FilesOf:
    """Return where an agent works; raise UnknownAgent."""
    with conn.cursor(row_factory=class_row(FilesOf)) as cursor:
        found = cursor.execute(statement("changes.place"), {"agent": agent}).fetchone()
    if found is None:
        raise UnknownAgent(f"there is no agent {agent}", hint="agentmesh ps --all lists the agents.")
    return found


def versions(conn: Connection, workspace: UUID, path: str, upto: int | None = None) -> list[Version]:
    """Return the snapshots of a workspace that may have changed a file, oldest first, and the first of all."""
    values = {"workspace": workspace, "path": path, "upto": upto}
    with conn.cursor(row_factory=class_row(Version)) as cursor:
        return cursor.execute(statement("changes.versions"), values).fetchall()


def trees_at(conn: Connection, session: SessionId, at: datetime) -> dict[AgentId, tuple[str, str | None]]:
    """Return the newest tree of each agent's workspace at a time, with its ref; without agents that had none."""
    found = conn.execute(statement("changes.trees_at"), {"session": session, "at": at}).fetchall()
    return {AgentId(agent): (tree, ref) for agent, tree, ref in found}


def _change(row: dict[str, Any]) -> Change:
    result, arguments, answer = (row.pop(name) for name in ("result", "arguments", "answer"))
    return Change(
        **row,
        path=one_line(visible(str(result["path"])), _PATH),
        lines=lines_of(row["tool"], arguments, answer, result),
        is_new=bool(result.get("created")),
    )
