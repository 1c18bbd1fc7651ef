"""The task tool: a sub-agent with a clean context, whose final answer is the result."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from agentmesh.config import agent_types
from agentmesh.config import skills as skills_
from agentmesh.config.agent_types import AgentType
from agentmesh.config.skills import Skill
from agentmesh.domain.parts import GENERAL_PURPOSE
from agentmesh.domain.permissions import Permissions
from agentmesh.engine.tool import Effect, ToolContext, ToolError
from agentmesh.store import agents, steps
from agentmesh.store.steps import TaskGiver
from agentmesh.store.tx import Database
from agentmesh.tools.fork import OWN_OR_SHARED, base_of
from agentmesh.tools.prompt import own_place_words, place_words, system_prompt
from agentmesh.tools.words import description
from agentmesh.workspace.workspaces import Workspaces

_NESTING = frozenset({"fork", "task"})
"""Tools that a sub-agent at the depth limit could never use."""


class TaskArgs(BaseModel):
    """Arguments of task."""

    description: str = Field(min_length=1, description="The task in three to six words, for people.")
    prompt: str = Field(
        min_length=1, description="The whole task: all that the sub-agent needs to know, and what to return."
    )
    subagent_type: str = Field(default=GENERAL_PURPOSE, description="Type of the sub-agent.")
    model: str | None = Field(default=None, description="Another model; leave it out unless asked to.")
    tools: list[str] | None = Field(default=None, description="Only these of its tools.")
    system_prompt: str | None = Field(default=None, description="In place of its type's own.")
    max_steps: int | None = Field(default=None, ge=1, description="Model calls at most.")
    workspace: OWN_OR_SHARED = Field(default=None, description="own: it works on a copy of the files, as with fork.")
    agent_id: str | None = Field(default=None, description="An earlier task's sub-agent, to go on with.")


def _no_skills(_workdir: Path) -> Mapping[str, Skill]:
    return {}


def _built_in(_workdir: Path) -> Mapping[str, AgentType]:
    return {kind.name: kind for kind in agent_types.built_in()}


@dataclass(frozen=True, slots=True)
class Delegation:
    """What tasks need from the configuration."""

    types: Callable[[Path], Mapping[str, AgentType]] = _built_in
    """The types for a working directory, by name."""
    model_name: Callable[[str], str] = str
    """Return the ``provider/model`` that a name means; raise if it cannot be used."""
    max_steps: Callable[[Path], int] = lambda _workdir: 500
    """Limit of model calls for one task, by working directory."""
    rules: Permissions = field(default_factory=Permissions)
    """The rules of a new session's root: the description leaves out the types that they deny."""
    skills: Callable[[Path], Mapping[str, Skill]] = _no_skills
    """The skills for a working directory, by name."""


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
        types = self._delegation.types(self._workdir) if self._workdir else _built_in(Path())
        lines = [f"- {kind.name}: {kind.description}" for kind in agent_types.offered(types, self._delegation.rules)]
        return "\n".join([description(self.name), *lines])

    def run(self, args: TaskArgs, context: ToolContext) -> None:
        """Hand the call over; the sub-agent's end writes the result."""
        limit = self._delegation.max_steps(context.project)
        most = min(args.max_steps or limit, limit)
        spec: dict[str, Any] = {"prompt": args.prompt, "description": args.description, "max_steps": most}
        if args.agent_id:
            known = self._database.run(agents.resolve, context.session_id, args.agent_id, idempotent=True)
            spec["agent_id"] = str(known.id)
        else:
            spec |= self._new(args, context)
        self._database.run(steps.task, context.own_lease, spec)

    def _new(self, args: TaskArgs, context: ToolContext) -> dict[str, Any]:
        """Return the settings of a new sub-agent, which never exceed its parent's rights."""
        giver = self._database.run(steps.task_giver, context.agent_id, idempotent=True)
        rules = Permissions.from_json(giver.permissions)
        kind = self._type(args.subagent_type, context.project, rules)
        model = args.model or kind.model
        most = min(filter(None, (args.max_steps, kind.max_steps, self._delegation.max_steps(context.project))))
        tools, permissions = _tools(args, kind, giver), agent_types.rules_for(rules, kind)
        workspace = args.workspace or kind.workspace
        is_own = workspace == "own"
        return {
            "name": _name(args.description, kind.name),
            "type": kind.name,
            "model": self._delegation.model_name(model) if model else giver.model,
            "system_prompt": system_prompt(
                context.project,
                args.system_prompt or kind.system_prompt,
                self._skills(context.project, tools, permissions),
                own_place_words(context.project) if is_own else place_words(context.workdir),
            ),
            "tools": tools,
            "permissions": permissions.to_json(),
            "max_steps": most,
            "workspace": workspace,
            "base": base_of(self._workspaces, context) if is_own else None,
        }

    def _skills(self, workdir: Path, tools: Sequence[Mapping[str, Any]], rules: Permissions) -> str:
        """Return the section about skills for the sub-agent's prompt, if it has the tool that reads them."""
        if not any(tool["function"]["name"] == "skill" for tool in tools):
            return ""
        return skills_.section(skills_.offered(self._delegation.skills(workdir), rules))

    def _type(self, name: str, workdir: Path, rules: Permissions) -> AgentType:
        types = self._delegation.types(workdir)
        if name not in types:
            offered = ", ".join(kind.name for kind in agent_types.offered(types, rules))
            raise ToolError(f"there is no type of sub-agent {name!r}", f"Types: {offered}.")
        return types[name]


def _tools(args: TaskArgs, kind: AgentType, giver: TaskGiver) -> list[dict[str, Any]]:
    """Return the definitions of the sub-agent's tools, taken from its parent's."""
    definitions = {tool["function"]["name"]: tool for tool in giver.tools}
    allowed = agent_types.tools_for(kind, list(definitions), definitions.keys())
    if giver.depth + 1 >= giver.max_depth:
        allowed = [name for name in allowed if name not in _NESTING]
    if args.tools is not None:
        unknown = [name for name in args.tools if name not in allowed]
        if unknown:
            raise ToolError(
                f"a sub-agent of type {kind.name} cannot have these tools: {', '.join(unknown)}",
                f"It can have: {', '.join(allowed)}.",
            )
        allowed = [name for name in allowed if name in args.tools]
    return [definitions[name] for name in allowed]


def _name(description: str, kind: str) -> str:
    """Return a name for the sub-agent, made from the description of its task."""
    words = re.sub(r"[^a-z0-9_.]+", "-", description.lower()).strip("-._")[:31].strip("-._")
    return words if words and words not in ("parent", "user", "all", "root") else kind
