"""Mail: send it, and find out what waits have taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from agentmesh.domain import wait_result
from agentmesh.domain.errors import MessageTooLarge, UnknownMessage
from agentmesh.domain.ids import AgentId, MailId
from agentmesh.domain.rows import Ref, Row
from agentmesh.domain.text import bytes_of, one_line, storable
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
    recipient: AgentId | None,
    body: str,
    key: str | None = None,
    lease: Lease | None = None,
    images: Sequence[Mapping[str, Any]] = (),
    *,
    urgent: bool = False,
    reply_to: MailId | None = None,
) -> MailId:
    """Put a message into the recipient's mailbox, where it is durable, and return its id. No sender means the user.

    The same key again, for the same sender and recipient, returns the same id. ``images`` are references to images that
    the session has (``images.keep``). ``urgent``: read at the recipient's next step, and calls that it has not started
    by then are not run. ``reply_to``: the mail that it answers, one that the sender has sent or received; without a
    recipient it goes to the sender of that mail, or to its recipient if the sender answers its own. Raise EmptyMessage,
    MessageTooLarge, UnknownAgent, DeadAgent, OtherSession, SelfTarget, MailboxFull, KeyReused, UnknownImage or
    UnknownMessage if it is refused.
    """
    require_size(body)
    key = storable(key) if key is not None else None
    values: dict[str, Any] = {"sender": sender, "recipient": recipient, "body": storable(body), "key": key}
    values |= {"images": jsonb(list(images)) if images else None, "urgent": urgent, **caller(lease)}
    values |= {"reply_to": None if reply_to is None else _possible(reply_to)}
    return MailId(scalar(conn, statement("mailbox.send"), values, int))


def addressee(conn: Connection, sender: AgentId | None, reply_to: MailId) -> Ref:
    """Return the recipient of an answer to this mail: its sender, or its recipient if the answer has the same sender.

    No sender means the user. Raise UnknownMessage if the sender cannot answer it.
    """
    values = {"sender": sender, "reply_to": _possible(reply_to)}
    with conn.cursor(row_factory=class_row(Ref)) as cursor:
        found = cursor.execute(statement("mailbox.addressee"), values).fetchone()
    if found is None:
        raise _unknown(reply_to)
    return found


def newest_of_agents(conn: Connection, agent: AgentId) -> MailId | None:
    """Return the newest message that another agent has sent to it, None without one; reports are no messages."""
    row = conn.execute(statement("mailbox.newest_of_agents"), {"agent": agent}).fetchone()
    return MailId(row[0]) if row else None


def _possible(mail: MailId) -> MailId:
    """Return the id; raise UnknownMessage for a number that no mail can have."""
    given: Any = mail  # a program need not have been checked for types
    if not isinstance(given, int) or not 0 < given < 2**63:
        raise _unknown(mail)
    return mail


def _unknown(mail: MailId) -> UnknownMessage:
    return UnknownMessage(
        f"there is no message {one_line(str(mail), 60)} in this session",
        hint="Take the message_id of a message that you have sent or received, or leave out reply_to.",
    )


def with_mail(conn: Connection, rows: Sequence[Row]) -> list[Row]:
    """Return the rows, with the mail that a wait took added to its result: people read it as messages."""
    known = reporters(conn, rows)
    shown = ((row, wait_result.taken(row, known.get((row.agent_id, row.seq), ()))) for row in rows)
    return [replace(row, mail=mail) if mail else row for row, mail in shown]


def reporters(conn: Connection, rows: Sequence[Row]) -> Mapping[tuple[AgentId, int], set[UUID]]:
    """Return the senders whose automatic reports were taken by waits, by the agent and seq of the result.

    Only results that leave it open are looked up in the database; the others are left out.
    """
    asked = [(row.agent_id, row.seq, sender) for row in rows for sender in wait_result.doubtful(row)]
    found: dict[tuple[AgentId, int], set[UUID]] = {}
    if asked:
        waiters, seqs, senders = map(list, zip(*asked, strict=True))
        values = {"waiters": waiters, "seqs": seqs, "senders": senders}
        for waiter, seq, sender in conn.execute(statement("mailbox.reported"), values):
            found.setdefault((waiter, seq), set()).add(sender)
    return found
