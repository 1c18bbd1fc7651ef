"""The fork tool: a child with the caller's conversation and a prompt."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from agentmesh.domain.errors import TreeError
from agentmesh.domain.shape import Shape
from agentmesh.engine.tool import Effect, ToolContext, ToolError
from agentmesh.store import agents
from agentmesh.store.tx import Database
from agentmesh.tools import compact
from agentmesh.tools import report as reports
from agentmesh.tools.report_check import require_check
from agentmesh.tools.tool_schema import RARE
from agentmesh.tools.typed import Delegation, typed, workspace_of
from agentmesh.tools.words import Described
from agentmesh.workspace.workspaces import Workspaces

OWN_OR_SHARED = Literal["shared", "own"] | None


class ForkArgs(BaseModel):
    """Arguments of fork."""

    name: str
    prompt: str
    workspace: OWN_OR_SHARED = Field(
        default=None,
        description="own, a copy of the files for it alone, to merge",
        json_schema_extra=RARE,
    )
    model: str | None = Field(default=None, description="another, only if asked to", json_schema_extra=RARE)
    tools: list[str] | None = Field(default=None, description="only these of yours", json_schema_extra=RARE)
    context: str | None = Field(
        default=None, description="none or last 3, what it sees of this", json_schema_extra=RARE
    )
    type: str | None = Field(default=None, description="one of task's types", json_schema_extra=RARE)
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = Field(
        default=None, description="none to xhigh", json_schema_extra=RARE
    )
    form: dict[str, Any] | None = Field(
        default=None, alias="schema", description="JSON Schema of its report", json_schema_extra=RARE
    )
    check: str | None = Field(default=None, description="a command that its report must pass", json_schema_extra=RARE)


class Fork(Described):
    """Make a child; both run at the same time."""

    name = "fork"
    effect = Effect.VERB
    args = ForkArgs

    def __init__(
        self, database: Database, workspaces: Workspaces | None = None, delegation: Delegation | None = None
    ) -> None:
        """``delegation``: the known types, and the meaning of a model's name."""
        self._database = database
        self._workspaces = workspaces
        self._delegation = delegation or Delegation()

    def run(self, args: ForkArgs, context: ToolContext) -> None:
        """Fork the agent; the verb writes the result."""
        shape = Shape(
            args.model,
            args.tools or None,  # an empty list is what models write for an argument that they do not use
            args.context or compact.context_of_forks(context.definitions),
            reports.form(args.form) if args.form is not None else None,
            require_check(args.check),
            check_approved=context.approved,
            type=args.type,
            effort=args.effort,
        )
        workspace: str | None = args.workspace
        if args.type is not None:
            workspace = workspace or workspace_of(self._delegation, args.type, context.project)
            shape = typed(
                self._database,
                self._delegation,
                context.agent_id,
                shape,
                context.project,
                context.workdir,
                workspace,
                reports_to_parent=True,
            )
        elif args.model:
            shape = shape._replace(model=self._delegation.model_name(args.model))
        base = base_of(self._workspaces, context) if workspace == "own" else None
        self._database.run(
            agents.fork,
            context.agent_id,
            args.name,
            args.prompt,
            lease=context.own_lease,
            workspace=workspace,
            base=base,
            shape=shape,
        )


def base_of(workspaces: Workspaces | None, context: ToolContext) -> str | None:
    """Return the tree that a child's own tree begins with, made of the caller's present files; raise ToolError."""
    if workspaces is None:
        raise ToolError("There are no own trees here.", 'Leave workspace out, or pass "shared".')
    try:
        return workspaces.base_for_fork(context.agent_id)
    except TreeError as error:
        hint = f'Leave workspace out, or pass "shared". {error.hint}'.strip()
        raise ToolError(f"A tree of its own cannot be made: {error.message}", hint) from error
