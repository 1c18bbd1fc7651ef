"""The ask_user tool: a question to the person. The engine asks it, and the answer is the result."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from agentmesh.engine.tool import Effect, ToolContext, ToolError
from agentmesh.tools.words import Described


class AskUserArgs(BaseModel):
    """Arguments of ask_user."""

    question: str = Field(min_length=1)
    options: list[str] | None = None


class AskUser(Described):
    """Ask the person."""

    name = "ask_user"
    effect = Effect.ASK
    args = AskUserArgs

    def run(self, _args: AskUserArgs, _context: ToolContext) -> dict[str, Any]:
        """Refuse: the engine runs this only if nobody can be asked."""
        raise ToolError(
            "nobody is here to answer",
            "Decide yourself, choose what is easy to undo, and say in your answer what you assumed.",
        )
