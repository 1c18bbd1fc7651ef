"""The kill tool: end a descendant and everything below it."""

from __future__ import annotations

from pydantic import BaseModel

from agentmesh.engine.tool import Effect, ToolContext
from agentmesh.store import agents
from agentmesh.store.tx import Database
from agentmesh.tools.words import Described


class KillArgs(BaseModel):
    """Arguments of kill."""

    agent_id: str


class Kill(Described):
    """End an agent and its descendants for good."""

    name = "kill"
    effect = Effect.VERB
    args = KillArgs

    def __init__(self, database: Database) -> None:
        self._database = database

    def run(self, args: KillArgs, context: ToolContext) -> None:
        """Kill the agent; the verb writes the result."""
        me, run = context.agent_id, self._database.run
        target = run(agents.resolve, context.session_id, args.agent_id, me, idempotent=True).id
        run(agents.kill, target, me, lease=context.own_lease)
