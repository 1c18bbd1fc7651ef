"""A tool of an MCP server, as the engine knows tools."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from pydantic import BaseModel

from agentmesh.config.mcp import PREFIX
from agentmesh.engine.tool import Effect, ToolContext
from agentmesh.tools.mcp.hub import Hub
from agentmesh.tools.mcp.schema import arguments_of


class McpTool:
    """Made from what an agent's settings say of it, so that no server has to run before it is called."""

    effect = Effect.WRITE  # whatever its server says of it: a hint of a foreign program gives no rights

    def __init__(self, definition: Mapping[str, Any], hub: Hub) -> None:
        self._function = definition["function"]
        self._hub = hub

    @property
    def name(self) -> str:
        """What the model calls it."""
        return str(self._function["name"])

    @property
    def description(self) -> str:
        """The words that the model reads: the server's own."""
        return str(self._function.get("description", ""))

    @cached_property
    def args(self) -> type[BaseModel]:
        """Whatever the server takes."""
        return arguments_of(self._function.get("parameters", {}))

    def run(self, args: BaseModel, context: ToolContext) -> Mapping[str, Any]:
        """Call it, at most once."""
        return self._hub.call(self.name, args.model_dump(), context)


def tool_of(definition: Mapping[str, Any], hub: Hub) -> McpTool | None:
    """Return the tool that a definition stands for, None where it is of no MCP server."""
    name = str(definition.get("function", {}).get("name", ""))
    return McpTool(definition, hub) if name.startswith(PREFIX) else None
