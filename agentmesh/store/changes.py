"""What agents changed in files, read from their calls of edit and write. There is no other record of it."""

from __future__ import annotations

from typing import Any, Final

from psycopg import Connection
from psycopg.rows import dict_row

from agentmesh.domain.changes import Change, lines_of
from agentmesh.domain.ids import AgentId
from agentmesh.domain.text import one_line, visible
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


def _change(row: dict[str, Any]) -> Change:
    result, arguments, answer = (row.pop(name) for name in ("result", "arguments", "answer"))
    return Change(
        **row,
        path=one_line(visible(str(result["path"])), _PATH),
        lines=lines_of(row["tool"], arguments, answer, result),
        is_new=bool(result.get("created")),
    )
