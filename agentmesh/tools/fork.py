"""The fork tool: a child with the caller's conversation and a prompt."""

from __future__ import annotations

from pydantic import BaseModel, Field

from agentmesh.engine.tool import Effect, ToolContext
from agentmesh.store import agents
from agentmesh.store.tx import Database
from agentmesh.tools.words import description


class ForkArgs(BaseModel):
    """Arguments of fork."""

    name: str = Field(description="Short label for the child, such as file-reader.")
    prompt: str = Field(description="The child's task: what to do, what to send back, to whom.")


class Fork:
    """Make a child; both run at the same time."""

    name = "fork"
    effect = Effect.VERB
    args = ForkArgs

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def description(self) -> str:
        """The description that the model reads."""
        return description(self.name)

    def run(self, args: ForkArgs, context: ToolContext) -> None:
        """Fork the agent; the verb writes the result."""
        self._database.run(agents.fork, context.agent_id, args.name, args.prompt, lease=context.own_lease)
