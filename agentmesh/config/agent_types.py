"""Types of sub-agents: what a type is, the built-in types, and what an agent of a type may use.

``type_catalog`` finds the other types, and decides between two of the same name.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from agentmesh.config.mcp import may_mean
from agentmesh.domain.parts import GENERAL_PURPOSE
from agentmesh.domain.permissions import Decision, Permissions, Rule, says

BUILT_IN: Final = "built in"
"""The source of the built-in types."""
WITHHELD: Final = frozenset({"task", "fork", "send", "wait", "kill", "interrupt", "todo", "todo_write"})
"""Tools that only a trusted type can grant, and only by listing their names."""


@dataclass(frozen=True, slots=True)
class AgentType:
    """A kind of sub-agent."""

    name: str
    description: str
    """What it is for; agents choose by it. One printable line."""
    system_prompt: str
    model: str | None = None
    """As a person writes it, with aliases resolved; None for the parent's model."""
    effort: str | None = None
    """How hard its model thinks, where it can be told; None: as its parent's."""
    tools: tuple[str, ...] | None = None
    """Names, or patterns of names; None for all tools that it may have."""
    disallowed_tools: tuple[str, ...] = ()
    """The same for tools that it never gets."""
    rules: tuple[Rule, ...] = ()
    """A layer over its parent's permissions: it takes rights away, never gives any."""
    max_steps: int | None = None
    """Limit of model calls for one task, below the general one; None for the general limit."""
    workspace: str | None = None
    """``own``: each task gets a tree of its own; None for the session's default."""
    guide: str | None = None
    """The skill that tells an agent how to use the type; it is read when it is needed."""
    halt: bool = False
    """Whether its reports may end the work of the agents above it."""
    silent: bool = False
    """Whether screens fold its rows away."""
    source: str = BUILT_IN
    """The file that defines it."""
    trusted: bool = False
    """From the user's own configuration: only then may it grant tools that are withheld from sub-agents."""
    hidden: bool = False
    """Not offered to agents; anyone who knows the name may use it."""


def built_in() -> tuple[AgentType, ...]:
    """Return the built-in types."""
    reading = ("ask_user", "glob", "grep", "read")
    writes_nothing = (Rule(Decision.DENY, "write"), Rule(Decision.DENY, "bash"))
    return (
        AgentType(
            "explore",
            "Finds things in files, changes nothing. Say how thorough.",
            _prompt("explore"),
            tools=reading,
            rules=writes_nothing,
        ),
        AgentType(
            GENERAL_PURPOSE,
            "Any task, with your tools.",
            _prompt(GENERAL_PURPOSE),
        ),
        AgentType(
            "plan",
            "Plans a change (steps, files, risks), changes nothing.",
            _prompt("plan"),
            tools=(*reading, "web_fetch"),
            rules=writes_nothing,
        ),
    )


def tools_for(kind: AgentType, parent_tools: Sequence[str], known: Collection[str]) -> list[str]:
    """Return the tools of a sub-agent of this type, in its parent's order; never one that its parent lacks.

    ``known`` are the existing tools: a parent's list may be older than the program.
    """
    granted = WITHHELD & set(kind.tools or ()) if kind.trusted else frozenset()
    return [
        tool
        for tool in parent_tools
        if tool in known
        and (tool not in WITHHELD or tool in granted)
        and (kind.tools is None or _names(kind.tools, tool))
        and not _names(kind.disallowed_tools, tool)
    ]


def is_denied(kind: str, rules: Permissions) -> bool:
    """Whether an agent with these permissions may never give a task to this type: ``deny = ["task(NAME)"]``."""
    return says(rules, "task", kind) is Decision.DENY


def offered(types: Mapping[str, AgentType], rules: Permissions) -> list[AgentType]:
    """Return the types to offer to an agent with these permissions, sorted by name."""
    return [types[name] for name in sorted(types) if not types[name].hidden and not is_denied(name, rules)]


def unknown_tools(kind: AgentType, known: Iterable[str]) -> list[str]:
    """Return the unknown tools that a type names."""
    there = list(known)
    return [
        asked for asked in (*(kind.tools or ()), *kind.disallowed_tools) if not any(may_mean(asked, t) for t in there)
    ]


def _names(patterns: Iterable[str], tool: str) -> bool:
    return any(fnmatch.fnmatchcase(tool, pattern) for pattern in patterns)


def _prompt(name: str) -> str:
    return (files("agentmesh.config") / "types" / f"{name}.md").read_text(encoding="utf-8").strip()
