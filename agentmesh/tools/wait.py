"""The wait tool: the next message, or one from each of several agents."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agentmesh.engine.tool import Effect, ToolContext
from agentmesh.store import waits
from agentmesh.store.tx import Database
from agentmesh.tools.words import Described


class WaitArgs(BaseModel):
    """Arguments of wait."""

    timeout: float = 600
    from_agents: list[str] | None = None


class Wait(Described):
    """Wait for mail."""

    name = "wait"
    effect = Effect.WAIT
    args = WaitArgs

    def __init__(self, database: Database) -> None:
        self._database = database

    def run(self, args: WaitArgs, context: ToolContext) -> dict[str, Any] | None:
        """Begin the wait; return its result if it is over at once, None if it goes on."""
        me, run = context.agent_id, self._database.run
        wanted = None
        if args.from_agents is not None:
            wanted = run(waits.targets, context.session_id, args.from_agents, me, idempotent=True)
        return run(waits.wait_begin, me, wanted, args.timeout, lease=context.own_lease)
