"""An agent's own wait, begun from outside: like its tool, it takes the messages that end it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from agentmesh.app.recorded_wait import RecordedWait
from agentmesh.domain.ids import AgentId, MailId, SessionId
from agentmesh.domain.states import WaitOutcome, WaitStatus
from agentmesh.store import waits
from agentmesh.store.tx import Database

LONGEST: Final = 86_400.0
"""Longest duration of such a wait, in seconds."""


@dataclass(frozen=True, slots=True)
class Received:
    """The part of a wait's result about one other agent, or about the user."""

    agent_id: AgentId | None
    """None: the user."""
    name: str
    status: WaitStatus
    """``received`` with a message, otherwise the other agent's status."""
    message: str = ""
    output: str = ""
    """The final text of an idle agent's last turn."""
    error: str | None = None
    """Why an idle agent's last turn ended otherwise."""
    message_id: MailId | None = None
    """The message's id, for an answer (``reply_to``); None for the user's."""
    reply_to: MailId | None = None
    """The message that it answers."""
    more: int = 0
    """Further messages from it, still unread."""


@dataclass(frozen=True, slots=True)
class OwnWaitResult:
    """How an agent's own wait ended."""

    outcome: WaitOutcome
    results: Sequence[Received]
    """One for each awaited agent, in the order asked; without named agents, the one message that ended the wait."""


class AgentWait:
    """One wait of an idle agent. Its worker runs the wait, which goes on even if nobody looks."""

    def __init__(self, database: Database, session: SessionId, waiter: AgentId) -> None:
        self._database, self._session, self._waiter = database, session, waiter
        self._recorded = RecordedWait(database, waiter)

    def begin(self, names: Sequence[str], timeout: float | None) -> dict[str, Any] | None:
        """Begin to wait for these agents (none named: anyone); return the result if it is over at once."""
        run = self._database.run
        targets = run(waits.targets, self._session, names, idempotent=True) if names else None
        return run(waits.wait_begin, self._waiter, targets, LONGEST if timeout is None else timeout)

    def look(self) -> dict[str, Any] | None:
        """Return the result once the wait is over; for a killed agent, a result that says so."""
        result = self._recorded.result()
        if result is None and self._recorded.was_killed:
            return {"outcome": WaitOutcome.INTERRUPTED, "results": [], "note": "the waiting agent was killed"}
        return result


def read(result: Mapping[str, Any]) -> OwnWaitResult:
    """Return the tool's result as an object for programs."""
    return OwnWaitResult(WaitOutcome(result["outcome"]), [_entry(entry) for entry in result["results"]])


def _entry(entry: Mapping[str, Any]) -> Received:
    agent = entry.get("agent_id")
    return Received(
        AgentId(UUID(agent)) if agent else None,
        str(entry["name"]),
        WaitStatus(entry.get("status", WaitStatus.RECEIVED)),
        str(entry.get("message", "")),
        str(entry.get("output", "")),
        entry.get("error"),
        entry.get("message_id"),
        (entry.get("reply_to") or {}).get("message_id"),
        int(entry.get("more", 0)),
    )
