"""Unread mail, looked at without reading it: it stays unread, and wakes and ends waits as before."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from agentmesh.domain.ids import AgentId, MailId
from agentmesh.sql import statement

MOST: Final = 50
"""Mails in one look."""


@dataclass(frozen=True, slots=True)
class Header:
    """The facts about an unread mail that are known without reading it."""

    message_id: MailId
    sender: UUID | None
    """None: the user."""
    sender_name: str
    kind: str
    """``message``, or of automatic mail ``report``, ``merge`` or ``task``."""
    urgent: bool
    sent_at: datetime
    bytes: int
    """The size of its whole text."""
    images: int
    begins: str
    """The first 120 characters."""
    reply_to: MailId | None = None
    """The message that it answers."""
    answers: str | None = None
    """How that begins."""

    def json(self) -> dict[str, Any]:
        """Return the shape that tools and commands show."""
        sender = None if self.sender is None else str(self.sender)
        answered = {"message_id": self.reply_to, "begins": self.answers}
        return {
            "message_id": self.message_id,
            "from": {"agent_id": sender, "name": self.sender_name},
            "kind": self.kind,
            "urgent": self.urgent,
            "sent_at": self.sent_at.isoformat(),
            "bytes": self.bytes,
            "images": self.images,
            "begins": self.begins,
            **({"reply_to": answered} if self.reply_to is not None else {}),
        }


@dataclass(frozen=True, slots=True)
class Peeked:
    """The oldest unread mails of an agent, and how many there are."""

    unread: int
    headers: list[Header]

    def json(self) -> dict[str, Any]:
        """Return the shape that tools and commands show."""
        return {"unread": self.unread, "messages": [header.json() for header in self.headers]}


def peek(conn: Connection, agent: AgentId, most: int = MOST) -> Peeked:
    """Return the headers of an agent's unread mail, the oldest first, at most so many. Nothing is read by it."""
    with conn.cursor(row_factory=class_row(Header)) as cursor:
        headers = cursor.execute(statement("mailbox.peek"), {"agent": agent, "most": most}).fetchall()
    unread = len(headers)
    if unread == most:
        row = conn.execute(statement("mailbox.unread"), {"agent": agent}).fetchone()
        unread = max(unread, int(row[0])) if row else unread
    return Peeked(unread, headers)
