"""Wait until agents rest. Nothing is consumed: watching reads no mail."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from agentmesh.api.changes import Changes
from agentmesh.domain.errors import DatabaseUnreachable, UnknownAgent
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.states import AgentStatus, WaitOutcome
from agentmesh.store import agents
from agentmesh.store import sessions as store
from agentmesh.store.tx import Database

TICK = 2.0
"""Seconds between two looks if no notification arrives."""


@dataclass(frozen=True, slots=True)
class Waited:
    """The status of one awaited agent."""

    agent_id: AgentId
    name: str
    status: AgentStatus
    output: str = ""
    """The final text of an idle agent's last turn."""
    error: str | None = None
    """Why an idle agent's last turn ended otherwise; None if it ended well."""

    def json(self) -> dict[str, Any]:
        """Return it in the form of an entry in the wait tool's result."""
        entry: dict[str, Any] = {"agent_id": self.agent_id, "name": self.name, "status": self.status}
        if self.status == AgentStatus.IDLE:
            entry |= {"output": self.output} if self.error is None else {"error": self.error}
        return entry


@dataclass(frozen=True, slots=True)
class WaitResult:
    """How a wait ended."""

    outcome: WaitOutcome
    """``complete``: all are idle or dead; ``timeout``: some still run."""
    results: Sequence[Waited]
    """One for each agent, in the order asked."""

    def json(self) -> dict[str, Any]:
        """Return it in the form of the tool's result."""
        return {"outcome": self.outcome, "results": [one.json() for one in self.results]}


def until_rest(
    database: Database,
    wakes: Changes,
    sessions: Collection[SessionId],
    listed: Sequence[AgentId],
    timeout: float | None,
    *,
    tick: float = TICK,
    check: Callable[[], None] = lambda: None,
    serve: Callable[[bool], None] = lambda _first: None,
) -> WaitResult:
    """Wait until the listed agents (none: all agents of the sessions that a worker runs) are idle or dead.

    ``check`` is called before every pause. ``serve`` is called before the first pause (with True) and whenever anything
    may have happened. Their errors end the wait. Raise DatabaseUnreachable only if the time is up or the outage is
    long, and UnknownSession if a session was deleted or has moved.
    """
    deadline = time.monotonic() + timeout if timeout is not None else math.inf
    first, anything = True, True
    asked = () if listed else sessions
    while True:
        try:
            # One small statement for all agents; their texts are read once, at the end.
            working = database.run(agents.working, listed, asked, idempotent=True)
            left = deadline - time.monotonic()
            if not working or left <= 0:
                results = _results(database, listed, sessions)
                if all(one.status != AgentStatus.RUNNING for one in results):
                    return WaitResult(WaitOutcome.COMPLETE, results)
                if left <= 0:
                    return WaitResult(WaitOutcome.TIMEOUT, results)
            check()
            if anything:
                serve(first)
        except DatabaseUnreachable as error:
            check()
            if time.monotonic() >= deadline:
                raise
            wakes.endure(error)
            continue
        except UnknownAgent:
            _require_still(database, sessions)
            raise
        first, anything = False, wakes.wait(min(tick, left), working) is None


def _results(database: Database, listed: Sequence[AgentId], sessions: Collection[SessionId]) -> list[Waited]:
    """Return each agent's status; listed agents come in their order."""
    asked = () if listed else sessions
    found = [Waited(*one) for one in database.run(agents.endings, listed, asked, idempotent=True)]
    if not found or len(found) < len(listed):  # agents go only with their session
        _require_still(database, sessions)
    by_id = {one.agent_id: one for one in found}
    return [by_id[agent] for agent in listed] if listed else found


def _require_still(database: Database, sessions: Collection[SessionId]) -> None:
    for session in sessions:
        database.run(store.require_still, session, idempotent=True)
