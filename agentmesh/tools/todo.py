"""The todo tool: the board of the session's work, which its agents share. ``todo_write`` is each agent's own list."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, Field

from agentmesh.engine.tool import Effect, ToolContext, ToolError
from agentmesh.store import todos
from agentmesh.store.tx import Database
from agentmesh.tools.tool_schema import RARE
from agentmesh.tools.words import Described

_LARGEST = 2**63 - 1


class TodoAction(StrEnum):
    """The operation on the board."""

    LIST = "list"
    ADD = "add"
    CLAIM = "claim"
    DONE = "done"
    RELEASE = "release"


class TodoArgs(BaseModel):
    """Arguments of todo."""

    action: TodoAction
    id: int | None = Field(default=None, ge=1, le=_LARGEST)
    content: str | None = None
    after: list[Annotated[int, Field(ge=1, le=_LARGEST)]] | None = Field(
        default=None, max_length=20, description="ids to be done first", json_schema_extra=RARE
    )
    note: str | None = Field(default=None, description="what came of it", json_schema_extra=RARE)


class Todo(Described):
    """Read and change the session's board."""

    name = "todo"
    effect = Effect.VERB
    args = TodoArgs

    def __init__(self, database: Database) -> None:
        self._database = database

    def run(self, args: TodoArgs, context: ToolContext) -> None:
        """Do it; the verb writes the result."""
        run, session, me, lease = self._database.run, context.session_id, context.agent_id, context.own_lease
        require_whole(args)
        match args.action:
            case TodoAction.LIST:
                run(todos.read_todos, session, lease)
            case TodoAction.ADD:
                run(todos.add_todo, session, me, args.content or "", args.after or (), lease)
            case TodoAction.CLAIM:
                run(todos.claim_todo, session, me, args.id, lease)
            case TodoAction.DONE:
                run(todos.finish_todo, session, me, args.id or 0, args.note, lease)
            case TodoAction.RELEASE:
                run(todos.release_todo, session, me, args.id or 0, lease)


def require_whole(args: TodoArgs) -> None:
    """Raise ToolError if an argument is missing that the action needs."""
    if args.action is TodoAction.ADD and not args.content:
        raise ToolError("add needs content", "Say in one line what is to be done.")
    if args.action in (TodoAction.DONE, TodoAction.RELEASE) and args.id is None:
        raise ToolError(f"{args.action} needs an id", "Action list shows them.")
