"""The send tool: one message to another agent of the session."""

from __future__ import annotations

from pydantic import BaseModel, Field

from agentmesh.engine.tool import Effect, ToolContext
from agentmesh.store import agents, mailbox
from agentmesh.store.tx import Database
from agentmesh.tools.words import description


class SendArgs(BaseModel):
    """Arguments of send."""

    to: str = Field(description='Agent id, name, or "parent".')
    message: str = Field(description="What the other agent should know or do; it sees nothing else of your work.")


class Send:
    """Put a message into an agent's mailbox."""

    name = "send"
    effect = Effect.VERB
    args = SendArgs

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def description(self) -> str:
        """The description that the model reads."""
        return description(self.name)

    def run(self, args: SendArgs, context: ToolContext) -> None:
        """Send the message; the verb writes the result."""
        me, run = context.agent_id, self._database.run
        recipient = run(agents.resolve, context.session_id, args.to, me, idempotent=True).id
        run(mailbox.send, me, recipient, args.message, lease=context.own_lease)
