"""A tool of an MCP server, in the engine's form."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from pydantic import BaseModel

from agentmesh.domain.tool_names import MCP_PREFIX
from agentmesh.engine.tool import Effect, ToolContext
from agentmesh.tools.mcp.hub import Hub
from agentmesh.tools.mcp.schema import arguments_of


class McpTool:
    """Made from the definition in an agent's settings, so that the server need not run before the tool is called."""

    effect = Effect.WRITE  # whatever its server says: a foreign program's hint gives no rights

    def __init__(self, definition: Mapping[str, Any], hub: Hub) -> None:
        self._function = definition["function"]
        self._hub = hub

    @property
    def name(self) -> str:
        """The name that the model uses."""
        return str(self._function["name"])

    @property
    def description(self) -> str:
        """The server's own description."""
        return str(self._function.get("description", ""))

    @cached_property
    def args(self) -> type[BaseModel]:
        """A model that accepts anything the server may accept."""
        return arguments_of(self._function.get("parameters", {}))

    def run(self, args: BaseModel, context: ToolContext) -> Mapping[str, Any]:
        """Call the tool, at most once."""
        return self._hub.call(self.name, args.model_dump(), context)


def tool_of(definition: Mapping[str, Any], hub: Hub) -> McpTool | None:
    """Return the tool for a definition, None if it does not belong to an MCP server."""
    name = str(definition.get("function", {}).get("name", ""))
    return McpTool(definition, hub) if name.startswith(MCP_PREFIX) else None
