"""A server's tools as agents see them: names, descriptions and schemas that every model server accepts."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agentmesh.config.mcp import NamedServer
from agentmesh.domain.text import clip, one_line, printable
from agentmesh.domain.tool_names import MCP_PREFIX
from agentmesh.tools.mcp.schema import BadSchema, parameters

if TYPE_CHECKING:
    from mcp_types import Tool

_LONGEST_NAME: Final = 64
"""Length of a tool's name that model servers accept."""
_DESCRIPTION: Final = 4_096


@dataclass(frozen=True, slots=True)
class Listing:
    """The tools of one server."""

    definitions: tuple[dict[str, Any], ...] = ()
    """In the form of a model's request, sorted by name."""
    originals: Mapping[str, str] = field(default_factory=dict)
    """The server's own names, by the names that agents use."""
    problems: tuple[str, ...] = ()
    """Which tools are left out and why, in words that can follow the server's name."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A tool of a server that cannot be read."""

    name: str
    why: str
    """In words that can follow its name."""


def tool_name(server: NamedServer, tool: str) -> str:
    """Return the name that agents use for a tool: always the same, in permitted characters."""
    name = f"{MCP_PREFIX}{server.slug}__{re.sub(r'[^A-Za-z0-9_-]', '_', tool)}"
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - 9]}_{hashlib.sha256(tool.encode()).hexdigest()[:8]}"


def listing(server: NamedServer, tools: Sequence[Tool | Unreadable], hidden: Callable[[str], str]) -> Listing:
    """Return the tools of a server that agents see; a tool that cannot be offered does not affect the others.

    ``hidden`` removes secrets from the server's text.
    """
    definitions: dict[str, dict[str, Any]] = {}
    originals: dict[str, str] = {}
    problems = []
    for tool in sorted(tools, key=lambda tool: tool.name):
        if not any(fnmatch.fnmatchcase(tool.name, pattern) for pattern in server.settings.tools):
            continue
        name = tool_name(server, tool.name)
        if isinstance(tool, Unreadable):
            problems.append(f"has a tool {one_line(tool.name, 60)} that is left out: it {tool.why}")
            continue
        try:
            schema = json.loads(hidden(json.dumps(parameters(tool.input_schema), ensure_ascii=False)))
        except BadSchema as bad:
            problems.append(f"has a tool {one_line(tool.name, 60)} that is left out: it {bad}")
            continue
        if name in originals:
            same = one_line(originals[name], 60)
            problems.append(f"has a tool {one_line(tool.name, 60)} that is left out: {same} has the same name here")
            continue
        described = clip(printable(hidden(tool.description or tool.title or "")), _DESCRIPTION).strip()
        originals[name] = tool.name
        function = {"name": name, "description": described, "parameters": schema}
        definitions[name] = {"type": "function", "function": function}
    return Listing(tuple(definitions[name] for name in sorted(definitions)), originals, tuple(problems))
