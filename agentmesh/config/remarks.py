"""Remarks for people about the files that guide agents; none of them stops the program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agentmesh.config import agent_types, instructions, rules
from agentmesh.config.agent_types import AgentType
from agentmesh.config.documents import Problem
from agentmesh.config.rules import SourcedRule
from agentmesh.config.type_catalog import Catalog
from agentmesh.domain.tool_names import MCP_PREFIX


def remarks(workdir: Path, types: Catalog, rules_: Sequence[SourcedRule], known: Sequence[str]) -> list[Problem]:
    """Return all remarks for a working directory; ``known`` are the existing tools, empty if they are unknown."""
    loaded = types.of(workdir)
    found = list(loaded.problems)
    if known:
        found += rules.unmatched(rules_, known)
        for kind in loaded.types.values():
            if kind.source != agent_types.BUILT_IN:
                found += _of_type(kind, known)
    problem = instructions.read(workdir).problem
    return [*found, problem] if problem else found


def summary(problems: Sequence[Problem], most: int = 5) -> list[str]:
    """Return a few lines for the start of a command: broken files first, then the number of further remarks."""
    shown = sorted(problems, key=lambda problem: not problem.broken)[:most]
    more = len(problems) - len(shown)
    rest = [f"{more} more remark{'s' if more > 1 else ''} about configuration: agentmesh doctor"] if more else []
    return [*map(str, shown), *rest]


def _of_type(kind: AgentType, known: Sequence[str]) -> list[Problem]:
    unknown = ", ".join(agent_types.unknown_tools(kind, known))
    own = [SourcedRule(rule, kind.source) for rule in kind.rules]
    found = rules.unmatched(own, known)
    if unknown:
        found.append(Problem(kind.source, f"names unknown tools: {unknown}"))
    of_servers = any(name.startswith(MCP_PREFIX) for name in kind.tools or ())  # unknown before the server runs
    if kind.tools is not None and not of_servers and not agent_types.tools_for(kind, known, known):
        found.append(Problem(kind.source, f"agents of the type {kind.name} have no tool at all"))
    return found
