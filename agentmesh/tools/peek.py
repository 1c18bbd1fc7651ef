"""The peek tool: what unread mail the agent has, without reading it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agentmesh.engine.tool import Effect, ToolContext
from agentmesh.store.peek import peek
from agentmesh.store.tx import Database
from agentmesh.tools.words import Described


class PeekArgs(BaseModel):
    """peek takes no arguments."""


class Peek(Described):
    """List the headers of the agent's unread mail."""

    name = "peek"
    effect = Effect.READ
    args = PeekArgs

    def __init__(self, database: Database) -> None:
        self._database = database

    def run(self, _args: PeekArgs, context: ToolContext) -> dict[str, Any]:
        """Return how many messages are unread, and their headers."""
        return self._database.run(peek, context.agent_id, idempotent=True).json()
