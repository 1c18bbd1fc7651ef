"""What agents changed in files: from their snapshots, or else from their calls of edit and write."""

from __future__ import annotations

from typing import Any, Final

from psycopg import Connection
from psycopg.rows import class_row, dict_row

from agentmesh.domain.changes import Change, lines_of
from agentmesh.domain.ids import AgentId
from agentmesh.domain.text import one_line, visible
from agentmesh.domain.workspaces import FileTotal
from agentmesh.sql import statement

MOST: Final = 1000
"""How many changes are read at once."""
_LARGEST = 1 << 20
"""The content of a write is read only if the arguments of the call have at most this many bytes."""
_PATH = 400
"""How many characters of a path are shown."""


def newest(conn: Connection, agent: AgentId, limit: int = MOST) -> list[Change]:
    """Return the newest changes of an agent and of all agents below it, oldest first."""
    values = {"agent": agent, "largest": _LARGEST, "limit": limit}
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(statement("changes.newest"), values).fetchall()
    return [_change(row) for row in reversed(rows)]


def totals(conn: Connection, agent: AgentId, since: int | None = None, limit: int = MOST) -> list[FileTotal]:
    """Return what the calls of an agent, and of all below it, changed, by agent and file; the newest first.

    By bash too, as far as snapshots were taken. ``since``: only by results after this row of the agent's, and by agents
    below it after the time of that row.
    """
    values = {"agent": agent, "since": since, "limit": limit}
    with conn.cursor(row_factory=class_row(FileTotal)) as cursor:
        return cursor.execute(statement("changes.totals"), values).fetchall()


def _change(row: dict[str, Any]) -> Change:
    result, arguments, answer = (row.pop(name) for name in ("result", "arguments", "answer"))
    return Change(
        **row,
        path=one_line(visible(str(result["path"])), _PATH),
        lines=lines_of(row["tool"], arguments, answer, result),
        is_new=bool(result.get("created")),
    )
