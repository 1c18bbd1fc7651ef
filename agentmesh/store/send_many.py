"""One message to several agents: all of them get it in one commit, or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from agentmesh.domain.audience import Audience
from agentmesh.domain.errors import Refused
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.rows import Ref
from agentmesh.domain.text import storable
from agentmesh.sql import statement
from agentmesh.store import agents
from agentmesh.store.call import Lease, caller
from agentmesh.store.mailbox import require_size


@dataclass(frozen=True, slots=True)
class Sent:
    """A mail of a message to several."""

    agent_id: UUID
    name: str
    message_id: int

    def json(self) -> dict[str, Any]:
        """Return the shape that tools and commands show."""
        return {"to": {"agent_id": str(self.agent_id), "name": self.name}, "message_id": self.message_id}


def audience_of(who: str) -> Audience | None:
    """Return the audience that this word means; None if it means an agent."""
    return next((each for each in Audience if each == who.strip().lower()), None)


def resolve_each(
    conn: Connection, session: SessionId, asked: Sequence[str], asker: AgentId | None = None
) -> list[AgentId]:
    """Return the agents with these names, ids or paths, in one statement; raise the error of the first wrong one."""
    found = agents.resolve_all(conn, session, asked, asker) if asked else []
    refs = [_found(each) for each in found]
    return [ref.id for ref in refs]


def _found(each: Ref | Refused) -> Ref:
    if isinstance(each, Refused):
        raise each
    return each


def send_many(
    conn: Connection,
    sender: AgentId | None,
    recipients: Sequence[AgentId] | Audience,
    body: str,
    key: str | None = None,
    lease: Lease | None = None,
    *,
    around: AgentId | None = None,
    urgent: bool = False,
) -> list[Sent]:
    """Put one message into several mailboxes, or into none; return the mails. No sender means the user.

    ``recipients`` are at most 256 agents of one session; one that is listed twice gets it once. Or they are the living
    agents of an audience ``around`` an agent, by default the sender. The same key again returns the same mails.
    Raise NoRecipients, TooManyRecipients, or what ``mailbox.send`` raises, if one of them refuses it.
    """
    require_size(body)
    listed = None if isinstance(recipients, Audience) else list(recipients)
    values: dict[str, Any] = {"sender": sender, "recipients": listed, "body": storable(body), "urgent": urgent}
    values |= {"audience": None if listed is not None else str(recipients), "around": around}
    values |= {"key": storable(key) if key is not None else None, **caller(lease)}
    with conn.cursor(row_factory=class_row(Sent)) as cursor:
        return cursor.execute(statement("mailbox.send_many"), values).fetchall()
