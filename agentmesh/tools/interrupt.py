"""The interrupt tool: stop the present work of a descendant; the descendant stays."""

from __future__ import annotations

from pydantic import BaseModel

from agentmesh.engine.tool import Effect, ToolContext
from agentmesh.store import agents
from agentmesh.store.tx import Database
from agentmesh.tools.words import Described


class InterruptArgs(BaseModel):
    """Arguments of interrupt."""

    agent_id: str


class Interrupt(Described):
    """End an agent's turn."""

    name = "interrupt"
    effect = Effect.VERB
    args = InterruptArgs

    def __init__(self, database: Database) -> None:
        self._database = database

    def run(self, args: InterruptArgs, context: ToolContext) -> None:
        """Interrupt the agent; the verb writes the result."""
        me, run = context.agent_id, self._database.run
        target = run(agents.resolve, context.session_id, args.agent_id, me, idempotent=True).id
        run(agents.interrupt, target, me, lease=context.own_lease)
