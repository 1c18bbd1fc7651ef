"""What the verb tools share: their lease, and how they resolve names of agents."""

from __future__ import annotations

from agentmesh.domain.errors import UnknownAgent
from agentmesh.domain.ids import AgentId
from agentmesh.engine.tool import ToolContext
from agentmesh.store import agents
from agentmesh.store.callers import Lease
from agentmesh.store.tx import Database


def lease_of(context: ToolContext) -> Lease:
    """Return the lease that the engine gives to every verb."""
    if context.lease is None:
        raise ValueError("a verb needs a lease")
    return context.lease


def resolve(database: Database, context: ToolContext, who: str) -> AgentId:
    """Return the agent that the model names by id, name, prefix, or "parent"."""
    if who.strip().lower() == "parent":
        parent = database.run(agents.get, context.agent_id, idempotent=True).parent_id
        if parent is None:
            raise UnknownAgent("the root has no parent", hint="End your turn with an answer: the user reads it.")
        return parent
    return database.run(agents.resolve, context.session_id, who, idempotent=True).id
