"""Mail: send it, and find out what waits have taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from psycopg import Connection

from agentmesh.domain import waited
from agentmesh.domain.errors import MessageTooLarge
from agentmesh.domain.ids import AgentId, MailId
from agentmesh.domain.rows import Row
from agentmesh.domain.text import bytes_of, storable
from agentmesh.sql import statement
from agentmesh.store.call import Lease, caller, scalar
from agentmesh.store.jsonb import jsonb

_MOST_BYTES: Final = 262_144


def require_size(body: str) -> None:
    """Raise MessageTooLarge for what the database would refuse, before it is sent there."""
    if len(body) * 4 > _MOST_BYTES and (size := bytes_of(body)) > _MOST_BYTES:
        raise MessageTooLarge(
            f"the message is {size} bytes long, the limit is {_MOST_BYTES} (256 KiB)",
            hint="Write it to a file and send the path.",
        )


def send(
    conn: Connection,
    sender: AgentId | None,
    recipient: AgentId,
    body: str,
    key: str | None = None,
    lease: Lease | None = None,
    images: Sequence[Mapping[str, Any]] = (),
) -> MailId:
    """Put a message into the recipient's mailbox, where it is durable, and return its id. No sender means the user.

    The same key again, for the same sender and recipient, returns the same id. ``images`` are references to images that
    the session has (``images.keep``). Raise EmptyMessage, MessageTooLarge, UnknownAgent, DeadAgent, OtherSession,
    SelfTarget, MailboxFull, KeyReused or UnknownImage if it is refused.
    """
    require_size(body)
    key = storable(key) if key is not None else None
    values: dict[str, Any] = {"sender": sender, "recipient": recipient, "body": storable(body), "key": key}
    values |= {"images": jsonb(list(images)) if images else None, **caller(lease)}
    return MailId(scalar(conn, statement("mailbox.send"), values, int))


def with_mail(conn: Connection, rows: Sequence[Row]) -> list[Row]:
    """Return the rows, with the mail that a wait took added to its result: people read it as messages."""
    known = reporters(conn, rows)
    shown = ((row, waited.taken(row, known.get((row.agent_id, row.seq), ()))) for row in rows)
    return [replace(row, mail=mail) if mail else row for row, mail in shown]


def reporters(conn: Connection, rows: Sequence[Row]) -> Mapping[tuple[AgentId, int], set[UUID]]:
    """Return the senders whose automatic reports were taken by waits, by the agent and seq of the result.

    Only results that leave it open are looked up in the database; the others are left out.
    """
    asked = [(row.agent_id, row.seq, sender) for row in rows for sender in waited.doubtful(row)]
    found: dict[tuple[AgentId, int], set[UUID]] = {}
    if asked:
        waiters, seqs, senders = map(list, zip(*asked, strict=True))
        values = {"waiters": waiters, "seqs": seqs, "senders": senders}
        for waiter, seq, sender in conn.execute(statement("mailbox.reported"), values):
            found.setdefault((waiter, seq), set()).add(sender)
    return found
