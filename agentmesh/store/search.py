"""Full-text search over all conversations and mail. It changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast

from psycopg import Connection
from psycopg import errors as pg
from psycopg.rows import class_row

from agentmesh.domain.errors import Timeout
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.text import storable
from agentmesh.sql import statement

PATIENCE: Final = 60
"""How long a search may take, in seconds."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A row of a conversation, or a message outside any conversation, that has the words."""

    session_id: SessionId
    agent_id: AgentId
    name: str
    """The agent's name; for a message, the recipient's."""
    seq: int | None
    """The row's number; None for a message."""
    mail_id: int | None
    kind: str
    """The row's kind; for a message, unread or withdrawn."""
    at: datetime
    snippet: str
    """The words stand between «», which are removed from the rest of the text. Foreign text."""

    @property
    def where(self) -> str:
        """``coder:12``, as ``agentmesh fork --at`` takes it; for a message, the agent's name."""
        return self.name if self.seq is None else f"{self.name}:{self.seq}"


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a search of all sessions goes: how many of the newest it looks into."""

    looked_into: int
    all_of_them: int


def search(
    conn: Connection,
    words: str,
    session: SessionId | None = None,
    agent: AgentId | None = None,
    most: int = 50,
    *,
    patience: float = PATIENCE,
) -> list[Hit]:
    """Return rows and mail that have these words, newest first.

    They are from a session, from one agent, or (neither given) from the newest sessions. ``"a phrase"``, ``or`` and
    ``-without`` are understood. Raise BadArgument without a word, and Timeout.
    """
    values = {"query": storable(words), "session": session, "agent": agent, "most": most}
    try:
        with conn.transaction(), conn.cursor(row_factory=class_row(Hit)) as cursor:
            cursor.execute(statement("search.patience"), {"timeout": f"{int(patience * 1000)}ms"})
            return cursor.execute(statement("search.search"), values).fetchall()
    except pg.QueryCanceled as error:
        hint = "Look into less: one session, one agent, or a rarer word."
        raise Timeout(f"the search was not done after {patience:g} s", hint=hint) from error


def reach(conn: Connection) -> Reach:
    """Return how many sessions a search of all sessions looks into."""
    with conn.cursor(row_factory=class_row(Reach)) as cursor:
        return cast(Reach, cursor.execute(statement("search.reach")).fetchone())
