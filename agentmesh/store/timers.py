"""Timers: messages that become mail when they are due, by the clock of the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from psycopg import Connection
from psycopg.rows import class_row

from agentmesh.domain.errors import UsageError
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.text import storable
from agentmesh.domain.timers import When
from agentmesh.sql import statement
from agentmesh.store.call import Lease, bigint, caller, scalar
from agentmesh.store.cron import next_time
from agentmesh.store.jsonb import jsonb
from agentmesh.store.mailbox import require_size

_FURTHEST: Final = timedelta(days=366)


@dataclass(frozen=True, slots=True)
class Timer:
    """A message that is due later."""

    id: int
    sender_name: str
    recipient: AgentId
    recipient_name: str
    body: str
    due_at: datetime
    every_seconds: float | None
    cron: str | None
    rung: int
    state: str


def send_later(
    conn: Connection,
    sender: AgentId | None,
    recipient: AgentId,
    body: str,
    when: When,
    lease: Lease | None = None,
    key: str | None = None,
    images: Sequence[Mapping[str, Any]] = (),
) -> int:
    """Send a message when it is due; return the timer's id. No sender means the user; an agent may send to itself.

    The same key again, for the same sender and recipient, returns the same timer. Raise what ``mailbox.send`` raises,
    except for a full mailbox; BadArgument for a time that is over or too far away, UsageError for a cron expression
    that is never due or too late, TooManyTimers if the session has 100.
    """
    require_size(body)
    values: dict[str, Any] = {"sender": sender, "recipient": recipient, "body": storable(body), **when._asdict()}
    values |= {"key": None if key is None else storable(key), "images": jsonb(list(images)) if images else None}
    if when.cron is not None and when == When(cron=when.cron):
        values["at"] = _first_time(conn, when.cron)
    return scalar(conn, statement("timers.send_later"), {**values, **caller(lease)}, int)


def _first_time(conn: Connection, cron: str) -> datetime:
    now = scalar(conn, statement("timers.clock"), {}, datetime)
    first = next_time(cron, now)
    if first is None:
        raise UsageError(f"{cron!r} is never due.", hint="Look at its day, its month and its weekday.")
    if first > now + _FURTHEST:
        raise UsageError(f"{cron!r} is due first on {first.astimezone():%Y-%m-%d}, more than 366 days from now.")
    return first


def ring_crons(conn: Connection) -> int:
    """Deliver the messages of cron expressions that are due, and set their next times; return how many.

    Each is a commit of its own. Times that were missed become one message.
    """
    due = conn.execute(statement("timers.due_crons")).fetchall()
    return sum(_ring_cron(conn, *one) for one in due)


def _ring_cron(conn: Connection, timer: int, cron: str, due_at: datetime, now: datetime) -> int:
    values = {"timer": timer, "due_at": due_at, "next_at": next_time(cron, now)}
    return scalar(conn, statement("timers.ring_cron"), values, int)


def cancel(conn: Connection, session: SessionId, timer: int) -> bool:
    """End a timer of a session; return False if it has ended already. Raise UnknownTimer."""
    return scalar(conn, statement("timers.cancel"), {"timer": bigint(timer, "the timer"), "session": session}, bool)


def pending(conn: Connection, session: SessionId) -> Sequence[Timer]:
    """Return the timers of a session that have not ended, those due first before others."""
    with conn.cursor(row_factory=class_row(Timer)) as cursor:
        return cursor.execute(statement("timers.pending"), {"session": session}).fetchall()


def due_at(conn: Connection, timer: int) -> datetime:
    """Return when a timer is due."""
    return scalar(conn, statement("timers.due_at"), {"timer": timer}, datetime)


def any_pending(conn: Connection) -> bool:
    """Return whether a timer of any session is pending."""
    return scalar(conn, statement("timers.any_pending"), {}, bool)
