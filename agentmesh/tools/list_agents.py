"""The list_agents tool: the living agents of this session."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel

from agentmesh.engine.tool import Effect, ToolContext
from agentmesh.store import agents
from agentmesh.store.tx import Database
from agentmesh.tools.words import Described

MOST: Final = 200
"""Agents in one result: more would exceed the size limit of a tool result."""


class ListAgentsArgs(BaseModel):
    """list_agents takes no arguments."""


class ListAgents(Described):
    """List the living agents of the session."""

    name = "list_agents"
    effect = Effect.READ
    args = ListAgentsArgs

    def __init__(self, database: Database) -> None:
        self._database = database

    def run(self, _args: ListAgentsArgs, context: ToolContext) -> dict[str, Any]:
        """Return the agents."""
        found = self._database.run(agents.list_agents, context.session_id, context.agent_id, MOST + 1, idempotent=True)
        if len(found) <= MOST:
            return {"agents": found}
        note = f"Only {MOST} of the agents, yours first. You can still reach the others by name or id."
        return {"agents": found[:MOST], "note": note}
