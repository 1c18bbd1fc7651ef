"""The fork tool: a child with the caller's conversation and a prompt."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from agentmesh.domain.errors import TreeError
from agentmesh.engine.tool import Effect, ToolContext, ToolError
from agentmesh.store import agents
from agentmesh.store.tx import Database
from agentmesh.tools.words import description
from agentmesh.workspace.workspaces import Workspaces

OWN_OR_SHARED = Literal["shared", "own"] | None


class ForkArgs(BaseModel):
    """Arguments of fork."""

    name: str = Field(description="Short label for the child, such as file-reader.")
    prompt: str = Field(description="The child's task: what to do, what to send back, to whom.")
    workspace: OWN_OR_SHARED = Field(
        default=None, description="own: it works on a copy of the files of its own, and you get its changes by merge."
    )


class Fork:
    """Make a child; both run at the same time."""

    name = "fork"
    effect = Effect.VERB
    args = ForkArgs

    def __init__(self, database: Database, workspaces: Workspaces | None = None) -> None:
        self._database = database
        self._workspaces = workspaces

    @property
    def description(self) -> str:
        """The description that the model reads."""
        return description(self.name)

    def run(self, args: ForkArgs, context: ToolContext) -> None:
        """Fork the agent; the verb writes the result."""
        base = base_of(self._workspaces, context) if args.workspace == "own" else None
        self._database.run(
            agents.fork,
            context.agent_id,
            args.name,
            args.prompt,
            lease=context.own_lease,
            workspace=args.workspace,
            base=base,
        )


def base_of(workspaces: Workspaces | None, context: ToolContext) -> str | None:
    """Return the tree that a child's own tree begins with: what the caller's files are now; raise ToolError."""
    if workspaces is None:
        raise ToolError("There are no own trees here.", 'Leave workspace out, or pass "shared".')
    try:
        return workspaces.base_for_fork(context.agent_id)
    except TreeError as error:
        hint = f'Leave workspace out, or pass "shared". {error.hint}'.strip()
        raise ToolError(f"A tree of its own cannot be made: {error.message}", hint) from error
