"""The task tool: a sub-agent with a clean context; its final answer is the result."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from agentmesh.config import agent_types
from agentmesh.config.agent_types import AgentType
from agentmesh.config.skills import Skill
from agentmesh.domain.parts import GENERAL_PURPOSE
from agentmesh.engine.tool import Effect, ToolContext, ToolError
from agentmesh.store import agents, batches, steps
from agentmesh.store.batches import ITEM, MOST_ITEMS
from agentmesh.store.tx import Database
from agentmesh.tools import report as reports
from agentmesh.tools.fork import OWN_OR_SHARED, base_of
from agentmesh.tools.report_check import require_check
from agentmesh.tools.tool_schema import RARE
from agentmesh.tools.typed import Delegation, built_in, find_type, prompt_of, rules_of, tools_of
from agentmesh.tools.words import description
from agentmesh.workspace.workspaces import Workspaces

_INT4 = 2**31 - 1
"""The largest number that the database's ``integer`` holds."""


class TaskArgs(BaseModel):
    """Arguments of task."""

    description: str = Field(min_length=1)
    prompt: str = Field(min_length=1)
    subagent_type: str = GENERAL_PURPOSE
    model: str | None = Field(default=None, description="as for fork", json_schema_extra=RARE)
    tools: list[str] | None = Field(default=None, description="as for fork", json_schema_extra=RARE)
    system_prompt: str | None = Field(default=None, description="in place of its type's", json_schema_extra=RARE)
    max_steps: int | None = Field(default=None, ge=1, description="model calls at most", json_schema_extra=RARE)
    workspace: OWN_OR_SHARED = Field(default=None, description="as for fork", json_schema_extra=RARE)
    background: bool = Field(default=False, description="true, for its result as mail", json_schema_extra=RARE)
    form: dict[str, Any] | None = Field(default=None, alias="schema", description="as for fork", json_schema_extra=RARE)
    check: str | None = Field(default=None, description="as for fork", json_schema_extra=RARE)
    agent_id: str | None = Field(
        default=None, description="an earlier sub-agent, to go on with", json_schema_extra=RARE
    )
    items: list[str] | None = Field(
        default=None,
        min_length=1,
        max_length=MOST_ITEMS,
    )
    side: int | None = Field(default=None, ge=1, le=_INT4, description="items at once", json_schema_extra=RARE)


def _require_batch(args: TaskArgs) -> None:
    """Refuse arguments that do not fit together in a batch."""
    if args.items is None:
        raise ToolError("side says how many items run side by side, and there are no items", "Give items.")
    if args.agent_id is not None or args.background:
        other = "agent_id" if args.agent_id is not None else "background"
        raise ToolError(f"items and {other} do not go together", f"Leave out {other}: each item gets a sub-agent.")
    if ITEM not in args.prompt:
        raise ToolError(f"the prompt does not say where the item goes: {ITEM} is not in it", f"Write {ITEM} in it.")
    if empty := [str(n) for n, item in enumerate(args.items, 1) if not item.strip()]:
        raise ToolError(f"these items are empty: {', '.join(empty[:20])}", "Leave them out, or say what they are.")


class Task:
    """Hand a task to a sub-agent."""

    name = "task"
    effect = Effect.TASK
    args = TaskArgs

    def __init__(
        self,
        database: Database,
        delegation: Delegation,
        workdir: Path | None = None,
        workspaces: Workspaces | None = None,
    ) -> None:
        """``workdir``: the directory whose types the description lists."""
        self._database = database
        self._workspaces = workspaces
        self._delegation = delegation
        self._workdir = workdir

    @property
    def description(self) -> str:
        """The description that the model reads, with the types that it may choose from."""
        types = self._delegation.types(self._workdir) if self._workdir else built_in(Path())
        known = self._delegation.skills(self._workdir) if self._workdir else {}
        lines = [_offer(kind, known) for kind in agent_types.offered(types, self._delegation.rules)]
        return "\n".join([description(self.name), *lines])

    def run(self, args: TaskArgs, context: ToolContext) -> None:
        """Hand the call over; the sub-agent's end writes the result."""
        limit = self._delegation.max_steps(context.project)
        most = min(args.max_steps or limit, limit)
        spec: dict[str, Any] = {"prompt": args.prompt, "description": args.description, "max_steps": most}
        if args.items is not None or args.side is not None:
            _require_batch(args)
            spec |= self._new(args, context) | {"items": args.items, "room": context.output_limit}
            self._database.run(batches.batch, context.own_lease, spec, args.side)
            return
        if args.background:
            spec["background"] = True
        if args.agent_id:
            if args.form is not None or args.check is not None:
                raise ToolError(
                    "a sub-agent keeps the schema and the check of its first task",
                    "Leave out schema and check, or leave out agent_id.",
                )
            known = self._database.run(
                agents.resolve, context.session_id, args.agent_id, context.agent_id, idempotent=True
            )
            spec["agent_id"] = str(known.id)
        else:
            spec |= self._new(args, context)
        self._database.run(steps.task, context.own_lease, spec)

    def _new(self, args: TaskArgs, context: ToolContext) -> dict[str, Any]:
        """Return the settings of a new sub-agent, which never exceed its parent's rights."""
        giver = self._database.run(steps.task_giver, context.agent_id, idempotent=True)
        kind = find_type(self._delegation, args.subagent_type, context.project, giver)
        model = args.model or kind.model
        most = min(filter(None, (args.max_steps, kind.max_steps, self._delegation.max_steps(context.project))))
        check = require_check(args.check)
        asked = args.form if args.form is not None or check is None else {"type": "string"}
        schema = reports.form(asked) if asked is not None else None
        if kind.halt:
            schema = reports.halting(schema)
        tools, permissions = tools_of(kind, giver, args.tools or None), rules_of(kind, giver)
        if schema:
            tools.append(reports.definition(schema))
        workspace = args.workspace or kind.workspace
        is_own = (workspace or giver.workspace) == "own"
        return {
            "name": _name(args.description, kind.name),
            "type": kind.name,
            "model": self._delegation.model_name(model) if model else giver.model,
            "system_prompt": prompt_of(
                self._delegation,
                kind,
                tools,
                permissions,
                context.project,
                None if is_own else context.workdir,
                args.system_prompt,
            ),
            "tools": tools,
            "schema": schema,
            "check": check,
            "check_approved": check is not None and context.approved,
            "permissions": permissions.to_json(),
            "effort": kind.effort,
            "halt": kind.halt,
            "silent": kind.silent,
            "max_steps": most,
            "workspace": workspace,
            "base": base_of(self._workspaces, context) if workspace == "own" else None,
        }


def _offer(kind: AgentType, known: Mapping[str, Skill]) -> str:
    """Return the line that offers a type, with the skill that is its guide if agents can read it."""
    guide = known.get(kind.guide or "")
    more = f" Read the skill {guide.name} before you use it." if guide and guide.for_agents else ""
    return f"- {kind.name}: {kind.description}{more}"


def _name(description: str, kind: str) -> str:
    """Return a name for the sub-agent, made from the description of its task."""
    words = re.sub(r"[^a-z0-9_.]+", "-", description.lower()).strip("-._")[:31].strip("-._")
    return words if words and words not in ("parent", "user", "all", "root") else kind
