"""Paths of agents, as in root/reader/tester: the error of a path that leads to no agent."""

from __future__ import annotations

from typing import NamedTuple

from psycopg import Connection
from psycopg.rows import dict_row

from agentmesh.domain.ids import SessionId
from agentmesh.domain.text import one_line
from agentmesh.sql import statement

_SHOWN = 60
"""Characters of a foreign text in an error."""


class Missing(NamedTuple):
    """The first part of a path that is not there."""

    part: str
    sentence: str
    hint: str
    """Where the agent of that name is; "" if there is none."""


def missing(conn: Connection, session: SessionId, path: str) -> Missing:
    """Return the error of a path that leads to no agent of the session."""
    parts = path.split("/")
    if "" in parts:
        whole = one_line(path, _SHOWN)
        return Missing(
            "", f"the path {whole!r} has an empty part", "A path names every agent from the root on: root/NAME."
        )
    with conn.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(statement("agents.named"), {"session": session, "names": list(set(parts))}).fetchall()
    named = {row["name"]: row for row in rows}
    above = None
    for place, part in enumerate(parts):
        found = named.get(part)
        if found is None or found["parent_id"] != above:
            return _refusal(parts, place, found["path"] if found else None)
        above = found["id"]
    # Somebody has renamed or made one since it was looked for.
    return Missing(parts[-1], f"there is no agent {one_line(path, _SHOWN)!r} in this session", "Ask again.")


def _refusal(parts: list[str], place: int, actual: str | None) -> Missing:
    part, above = one_line(parts[place], _SHOWN), one_line("/".join(parts[:place]), _SHOWN)
    where = f"there is no {part!r} below {above}" if place else f"a path begins with the root, not with {part!r}"
    return Missing(parts[place], where, f"{part} is at {actual}." if actual else "")
