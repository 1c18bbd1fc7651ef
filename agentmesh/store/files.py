"""The contents of files that agents have seen and written. Paths are absolute and free of links, digests SHA-256.

What a call has seen is stored with its result (``steps``). What a call will write is stored before it writes.
"""

from __future__ import annotations

from dataclasses import dataclass

from psycopg import Connection
from psycopg.rows import class_row

from agentmesh.domain.ids import AgentId
from agentmesh.domain.text import storable
from agentmesh.sql import statement


@dataclass(frozen=True, slots=True)
class Known:
    """The known facts about a file when an agent is about to change it."""

    seen: str | None = None
    """Digest of the content that the agent last saw. A fork has seen what its parent had seen by then."""
    writer: AgentId | None = None
    """The agent of its session that last wrote the file with a tool."""
    writer_name: str | None = None
    written: str | None = None
    """Digest of the content that this agent wrote."""


def known(conn: Connection, agent: AgentId, path: str) -> Known:
    """Return the content that an agent last saw of a file, and the agent that last wrote it."""
    values = {"agent": agent, "path": storable(path)}
    with conn.cursor(row_factory=class_row(Known)) as cursor:
        return cursor.execute(statement("files.known"), values).fetchone() or Known()


def note_write(conn: Connection, agent: AgentId, seq: int, path: str, digest: str) -> None:
    """Record that an agent writes this content in a step, and so has seen it; may be repeated."""
    values = {"agent": agent, "seq": seq, "path": storable(path), "digest": digest}
    conn.execute(statement("files.note_write"), values)
