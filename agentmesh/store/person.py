"""What only people do: capture, retry, take back, change model or tools. Each is one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from agentmesh.domain.ids import AgentId, MailId, SessionId
from agentmesh.domain.rows import Ref
from agentmesh.domain.text import storable
from agentmesh.sql import statement
from agentmesh.store.call import scalar
from agentmesh.store.jsonb import jsonb


def begin_capture(conn: Connection, agent: AgentId) -> bool:
    """Begin to keep what the person types from every model; return False if a capture is open already."""
    return scalar(conn, statement("person.begin_capture"), {"agent": agent}, bool)


def capture(conn: Connection, agent: AgentId, text: str) -> int:
    """Keep one text that no model sees; return its seq. Raise NoCapture, EmptyMessage or MessageTooLarge."""
    return scalar(conn, statement("person.capture"), {"agent": agent, "text": storable(text)}, int)


def cancel_capture(conn: Connection, agent: AgentId) -> None:
    """End the capture; its text stays. Raise NoCapture."""
    conn.execute(statement("person.cancel_capture"), {"agent": agent})


def captured(conn: Connection, agent: AgentId) -> list[str]:
    """Return the texts of the agent's open capture, oldest first."""
    return [text for (text,) in conn.execute(statement("person.captured"), {"agent": agent}).fetchall()]


def is_capturing(conn: Connection, agent: AgentId) -> bool:
    """Return whether a capture of the agent is open."""
    return scalar(conn, statement("person.is_capturing"), {"agent": agent}, bool)


def fork_captured(conn: Connection, parent: AgentId, name: str = "fork") -> AgentId:
    """End the capture and make a child whose prompt is its text; without any text the child is idle.

    It is refused as any fork is; the capture then stays open.
    """
    return AgentId(scalar(conn, statement("person.fork_captured"), {"parent": parent, "name": storable(name)}, UUID))


def note(conn: Connection, agent: AgentId, content: Mapping[str, Any]) -> int:
    """Keep a command and its output as a row that no model sees; return its seq."""
    return scalar(conn, statement("person.note"), {"agent": agent, "content": jsonb(dict(content))}, int)


def see(conn: Connection, agent: AgentId) -> bool:
    """Note that a person has looked at the end of the agent's last turn; return whether that was new."""
    return scalar(conn, statement("person.see"), {"agent": agent}, bool)


def retry(conn: Connection, agent: AgentId) -> None:
    """Run an idle agent again after a turn that failed or was interrupted; raise NothingToRetry or AgentBusy."""
    conn.execute(statement("person.retry"), {"agent": agent})


def failed(conn: Connection, session: SessionId) -> list[Ref]:
    """Return the agents whose last turn failed or was out of budget and can run again, the deepest first."""
    with conn.cursor(row_factory=class_row(Ref)) as cursor:
        return cursor.execute(statement("person.failed"), {"session": session}).fetchall()


def take_back(conn: Connection, mail: MailId) -> str:
    """Withdraw a message from the user and return its text; raise MailRead if it is too late."""
    return scalar(conn, statement("person.take_back"), {"mail": mail}, str)


def set_model(conn: Connection, agent: AgentId, model: str) -> None:
    """Give the agent another ``provider/model`` from its next turn on."""
    conn.execute(statement("person.set_model"), {"agent": agent, "model": storable(model)})


def set_settings(
    conn: Connection,
    agent: AgentId,
    *,
    system_prompt: str | None = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    what: str,
) -> None:
    """Give the agent another system prompt or other tools from its next turn on; ``what`` tells the transcript."""
    values = {
        "agent": agent,
        "system_prompt": storable(system_prompt) if system_prompt is not None else None,
        "tools": jsonb(list(tools)) if tools is not None else None,
        "what": storable(what),
    }
    conn.execute(statement("person.set_settings"), values)


def rename_session(conn: Connection, session: SessionId, title: str) -> None:
    """Give the session another title."""
    conn.execute(statement("person.rename_session"), {"session": session, "title": storable(title)})
