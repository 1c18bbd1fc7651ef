"""What each agent did and when: stretches of time, and mail between agents; for drawings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg import Connection
from psycopg.rows import class_row

from agentmesh.domain.ids import AgentId, MailId, SessionId
from agentmesh.domain.states import AgentStatus
from agentmesh.sql import statement
from agentmesh.store.call import typed_row

_PAGE = 500


@dataclass(frozen=True, slots=True)
class LaneRow:
    """An agent whose time is drawn."""

    id: AgentId
    parent_id: AgentId | None
    name: str
    status: AgentStatus
    created_at: datetime
    died_at: datetime | None
    last_at: datetime
    """Time of its newest row, or of its death."""
    now: datetime
    """Time of the transaction."""


@dataclass(frozen=True, slots=True)
class SpanRow:
    """A stretch of an agent's time."""

    kind: str
    """model, tool, wait (for others) or ask (for a person)."""
    name: str
    """Name of the model or the tool."""
    began: datetime
    ended: datetime | None
    """None while it goes on."""
    failed: bool


@dataclass(frozen=True, slots=True)
class LetterRow:
    """A message."""

    id: MailId
    sender: AgentId | None
    """None: the user."""
    recipient: AgentId
    sent_at: datetime
    automatic: bool
    read_seq: int | None
    """The recipient's row that shows it."""
    count: int
    """How many messages there are in all."""


@dataclass(frozen=True, slots=True)
class Island:
    """A stretch of time in which something was done."""

    began: datetime
    ended: datetime


def lanes(conn: Connection, session: SessionId) -> list[LaneRow]:
    """Return the agents of the session, oldest first; the dead and reaped too."""
    with conn.cursor(row_factory=typed_row(LaneRow)) as cursor:
        return cursor.execute(statement("timeline.lanes"), {"session": session}).fetchall()


def busy(conn: Connection, agents: Sequence[AgentId]) -> list[Island]:
    """Return when any of these agents did something, in order."""
    with conn.cursor(row_factory=class_row(Island)) as cursor:
        return cursor.execute(statement("timeline.busy"), {"agents": list(agents)}).fetchall()


def spans(conn: Connection, agent: AgentId) -> Iterator[SpanRow]:
    """Yield what an agent did, in the order of its beginning, page by page; only within a transaction."""
    with conn.cursor(name="spans", row_factory=class_row(SpanRow)) as cursor:
        cursor.itersize = _PAGE
        cursor.execute(statement("timeline.spans"), {"agent": agent})
        yield from cursor


def letters(conn: Connection, agents: Sequence[AgentId], limit: int) -> list[LetterRow]:
    """Return the newest mail to these agents, oldest first, at most ``limit`` messages."""
    with conn.cursor(row_factory=class_row(LetterRow)) as cursor:
        values = {"agents": list(agents), "limit": limit}
        return cursor.execute(statement("timeline.letters"), values).fetchall()[::-1]
