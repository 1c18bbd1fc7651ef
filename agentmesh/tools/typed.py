"""The tools, rules and prompt of an agent of a type, for tasks and forks: never more than its maker has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentmesh.config import agent_types
from agentmesh.config import skills as skills_
from agentmesh.config.agent_types import AgentType
from agentmesh.config.skills import Skill
from agentmesh.domain.ids import AgentId
from agentmesh.domain.permissions import Permissions, intersect
from agentmesh.domain.shape import Shape
from agentmesh.engine.tool import ToolError
from agentmesh.store import steps
from agentmesh.store.steps import TaskGiver
from agentmesh.store.tx import Database
from agentmesh.tools import report as reports
from agentmesh.tools.prompt import own_place_words, place_words, system_prompt

_NESTING = frozenset({"fork", "task"})
"""Tools that an agent at the depth limit could never use."""


def _no_skills(_workdir: Path) -> Mapping[str, Skill]:
    return {}


def built_in(_workdir: Path) -> Mapping[str, AgentType]:
    """Return the built-in types by name."""
    return {kind.name: kind for kind in agent_types.built_in()}


@dataclass(frozen=True, slots=True)
class Delegation:
    """The parts of the configuration that tasks and typed forks need."""

    types: Callable[[Path], Mapping[str, AgentType]] = built_in
    """The types for a working directory, by name."""
    model_name: Callable[[str], str] = str
    """Return the ``provider/model`` that a name means; raise if it cannot be used."""
    max_steps: Callable[[Path], int] = lambda _workdir: 500
    """Limit of model calls for one task, by working directory."""
    rules: Permissions = field(default_factory=Permissions)
    """The rules of a new session's root: the description leaves out the types that they deny."""
    skills: Callable[[Path], Mapping[str, Skill]] = _no_skills
    """The skills for a working directory, by name."""


def typed(
    database: Database,
    delegation: Delegation,
    parent: AgentId,
    shape: Shape,
    project: Path,
    place: Path | None,
    workspace: str | None,
    *,
    reports_to_parent: bool,
) -> Shape:
    """Return the shape of a fork with everything that its type says; its model is a ``provider/model``.

    What the shape says itself goes before the type. ``place`` is where its parent works, None if that is not here;
    ``workspace`` is the kind asked for, by name or by type; None: the session's default. ``reports_to_parent``: its
    parent gives it its prompt; only then can it halt work. Raise ToolError for an unknown or denied type, and for tools
    that an agent of the type cannot have.
    """
    giver = database.run(steps.task_giver, parent, idempotent=True)
    kind = find_type(delegation, shape.type or "", project, giver)
    if agent_types.is_denied(kind.name, Permissions.from_json(giver.permissions)):
        raise ToolError(f"a rule denies the type {kind.name} to this agent", _types(delegation, project, giver))
    tools, permissions = tools_of(kind, giver, shape.tools), rules_of(kind, giver)
    model = shape.model or kind.model
    if (workspace or giver.workspace) == "own":
        place = None
    definition = {
        "name": kind.name,
        "system_prompt": prompt_of(delegation, kind, tools, permissions, project, place),
        "permissions": permissions.to_json(),
        "halt": kind.halt,
        "silent": kind.silent,
    }
    return shape._replace(
        effort=shape.effort or kind.effort,
        schema=reports.halting(shape.schema) if kind.halt and reports_to_parent else shape.schema,
        model=delegation.model_name(model) if model else None,
        tools=[tool["function"]["name"] for tool in tools],
        definition=definition,
    )


def workspace_of(delegation: Delegation, name: str, project: Path) -> str | None:
    """Return the kind of workspace that a type asks for; None if it says nothing, or is unknown."""
    kind = type_of(delegation, name, project)
    return kind.workspace if kind else None


def type_of(delegation: Delegation, name: str, project: Path) -> AgentType | None:
    """Return the type of this name; None if it is unknown."""
    return delegation.types(project).get(_plain(name))


def find_type(delegation: Delegation, name: str, project: Path, giver: TaskGiver) -> AgentType:
    """Return the type of this name; raise ToolError with the names of those there are."""
    found = type_of(delegation, name, project)
    if found is None:
        raise ToolError(f"there is no type of sub-agent {name[:60]!r}", _types(delegation, project, giver))
    return found


def tools_of(kind: AgentType, giver: TaskGiver, wanted: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Return the definitions of the tools of an agent of a type, taken from its parent's; only those ``wanted``."""
    definitions = {tool["function"]["name"]: tool for tool in giver.tools}
    definitions.pop("report", None)  # it belongs to the giver's own task
    allowed = agent_types.tools_for(kind, list(definitions), definitions.keys())
    if giver.depth + 1 >= giver.max_depth:
        allowed = [name for name in allowed if name not in _NESTING]
    if wanted is not None:
        unknown = [name for name in wanted if name not in allowed]
        if unknown:
            raise ToolError(
                f"a sub-agent of type {kind.name} cannot have these tools: {', '.join(unknown)}",
                f"It can have: {', '.join(allowed)}.",
            )
        allowed = [name for name in allowed if name in wanted]
    return [definitions[name] for name in allowed]


def rules_of(kind: AgentType, giver: TaskGiver) -> Permissions:
    """Return the permissions of an agent of a type: its parent's, with the rules of the type on top."""
    return intersect(Permissions.from_json(giver.permissions), kind.rules)


def prompt_of(
    delegation: Delegation,
    kind: AgentType,
    tools: Sequence[Mapping[str, Any]],
    rules: Permissions,
    project: Path,
    place: Path | None,
    words: str | None = None,
) -> str:
    """Return the system prompt of an agent of a type; ``words`` are in place of the type's.

    ``place`` is where it works; None: in a tree of its own, which is not made yet.
    """
    reads_skills = any(tool["function"]["name"] == "skill" for tool in tools)
    told = skills_.section(skills_.offered(delegation.skills(project), rules)) if reads_skills else ""
    where = own_place_words(project) if place is None else place_words(place)
    return system_prompt(project, words or kind.system_prompt, told, where)


def _plain(name: str) -> str:
    return name.strip().lower()


def _types(delegation: Delegation, project: Path, giver: TaskGiver) -> str:
    rules = Permissions.from_json(giver.permissions)
    offered = agent_types.offered(delegation.types(project), rules)
    return f"Types: {', '.join(kind.name for kind in offered)}."
