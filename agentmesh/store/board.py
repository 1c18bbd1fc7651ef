"""What screens read: all agents of a session at a glance, and conversations by the window."""

from __future__ import annotations

from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row, dict_row

from agentmesh.domain.errors import UnknownSession
from agentmesh.domain.ids import AgentId, MailId, SessionId
from agentmesh.domain.rows import AgentView, Row
from agentmesh.domain.states import AgentStatus, Kind
from agentmesh.sql import statement
from agentmesh.store.scalar import scalar
from agentmesh.store.typed import typed_row

_PENDING_WIDTH = 4_000
"""Characters of an unread message that a screen gets."""
_ALL = 2**62
_VIEW = tuple(field.name for field in fields(AgentView))


@dataclass(frozen=True, slots=True)
class Standing:
    """An agent, and what only screens ask of it."""

    view: AgentView
    running_for: float | None
    """Seconds; None while it is not running."""
    ended_with: Kind | None
    """Kind of the row that its last turn ended with."""
    capturing: bool


@dataclass(frozen=True, slots=True)
class StandingWait:
    """A wait that an agent is in."""

    waiter: AgentId
    targets: list[UUID] | None
    received: list[UUID]
    left: float
    """Seconds until its deadline."""


@dataclass(frozen=True, slots=True)
class PendingMail:
    """A message of the user that its recipient has not read; long ones are cut."""

    id: MailId
    recipient: AgentId
    body: str


@dataclass(frozen=True, slots=True)
class Left:
    """What goes on in a session that nobody looks at."""

    running: int
    tokens: int | None
    """That it may still use; None without a cap."""
    cost_usd: Decimal | None
    """Known cost that it may still cause; None without a cap."""
    untouched: bool
    """Whether nothing has ever happened in it."""


def left(conn: Connection, session: SessionId) -> Left:
    """Return how many agents run and what they may still spend; raise UnknownSession."""
    with conn.cursor(row_factory=class_row(Left)) as cursor:
        found = cursor.execute(statement("board.left"), {"session": session}).fetchone()
    if found is None:
        raise UnknownSession(f"there is no session {session}", hint="agentmesh sessions lists them.")
    return found


def agents(conn: Connection, session: SessionId) -> list[Standing]:
    """Return all agents of the session, the dead and reaped too, oldest first."""
    with conn.cursor(row_factory=dict_row) as cursor:
        return [_standing(row) for row in cursor.execute(statement("board.agents"), {"session": session}).fetchall()]


def waits(conn: Connection, session: SessionId) -> list[StandingWait]:
    """Return the waits of the session's agents."""
    with conn.cursor(row_factory=class_row(StandingWait)) as cursor:
        return cursor.execute(statement("board.waits"), {"session": session}).fetchall()


def pending(conn: Connection, session: SessionId) -> list[PendingMail]:
    """Return what the user wrote to agents of the session and they have not read, oldest first."""
    with conn.cursor(row_factory=class_row(PendingMail)) as cursor:
        return cursor.execute(statement("board.pending"), {"session": session, "width": _PENDING_WIDTH}).fetchall()


def newest(conn: Connection, agent: AgentId, limit: int, before: int | None = None) -> list[Row]:
    """Return the agent's own newest rows (before a seq, if given), oldest first, at most so many."""
    values = {"agent": agent, "before": _ALL if before is None else before, "limit": limit}
    with conn.cursor(row_factory=typed_row(Row)) as cursor:
        return cursor.execute(statement("board.before"), values).fetchall()[::-1]


def appended(conn: Connection, agent: AgentId, after: int, limit: int) -> list[Row]:
    """Return the agent's own rows after a seq, of all kinds, at most so many."""
    values = {"agent": agent, "after": after, "limit": limit}
    with conn.cursor(row_factory=typed_row(Row)) as cursor:
        return cursor.execute(statement("board.appended"), values).fetchall()


def inherited(conn: Connection, agent: AgentId, limit: int) -> tuple[list[Row], int]:
    """Return the newest rows that the agent inherited, oldest first, and how many there are in all."""
    with conn.cursor(row_factory=typed_row(Row)) as cursor:
        rows = cursor.execute(statement("board.inherited"), {"agent": agent, "limit": limit}).fetchall()[::-1]
    return rows, scalar(conn, statement("board.inherited_count"), {"agent": agent}, int)


def _standing(row: dict[str, Any]) -> Standing:
    view = {name: row[name] for name in _VIEW}
    ended = row["ended_with"]
    return Standing(
        AgentView(**{**view, "status": AgentStatus(view["status"])}),
        row["running_for"],
        Kind(ended) if ended is not None else None,
        row["capturing"],
    )
