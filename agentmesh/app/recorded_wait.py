"""Find the result of an agent's own wait in the agent's transcript, for a process that began the wait from outside.

Different processes end such a wait, so they share only this part. A worker ends the waits of the agents that it runs: a
program or a command (``api.own_wait``) learns the result from the transcript. An external agent has no worker: its MCP
server (``mcp.own_wait``) ends the wait under its lease, and reads the transcript only if the database's reply was lost.
"""

from __future__ import annotations

from typing import Any

from agentmesh.app.cursors import Cursors
from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import Kind
from agentmesh.store.tx import Database


class RecordedWait:
    """One wait of one agent. Create it just before the wait begins: it ignores all earlier rows."""

    def __init__(self, database: Database, waiter: AgentId) -> None:
        self._cursors, self._waiter = Cursors(database), waiter
        self.was_killed = False
        """Whether the agent's death was recorded instead of a result."""
        self._cursors.skip(waiter)

    def result(self) -> dict[str, Any] | None:
        """Return the wait's result once it is recorded."""
        for row in self._cursors.new(self._waiter):
            if row.kind == Kind.COMMAND and row.content.get("command") == "wait":  # people may record other commands
                return dict(row.content["result"])
            if row.kind == Kind.EVENT and row.content.get("event") == "killed":
                self.was_killed = True
        return None
