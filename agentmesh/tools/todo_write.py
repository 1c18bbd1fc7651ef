"""The todo_write tool: the agent's to-do list. The list is stored in the call itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from agentmesh.domain.todos import TodoStatus
from agentmesh.engine.tool import Effect, ToolContext
from agentmesh.tools.words import Described

_MOST = 100


class TodoItem(BaseModel):
    """One item."""

    content: str = Field(min_length=1, max_length=500)
    status: TodoStatus


class TodoWriteArgs(BaseModel):
    """Arguments of todo_write."""

    items: list[TodoItem] = Field(max_length=_MOST)


class TodoWrite(Described):
    """Replace the agent's to-do list."""

    name = "todo_write"
    effect = Effect.READ
    """It changes only its own row."""
    args: type[BaseModel] = TodoWriteArgs

    def run(self, args: TodoWriteArgs, context: ToolContext) -> Mapping[str, Any]:
        """Return the number of items, and of open items."""
        by_status = [item.status for item in args.items]
        now = next((item.content for item in args.items if item.status is TodoStatus.IN_PROGRESS), "")
        context.progress(f"to do: {now}" if now else "to do")
        result: dict[str, Any] = {
            "items": len(by_status),
            "open": len(by_status) - by_status.count(TodoStatus.COMPLETED),
        }
        if by_status.count(TodoStatus.IN_PROGRESS) > 1:
            result["note"] = "More than one item is in_progress: people read it as what you do right now."
        return result
