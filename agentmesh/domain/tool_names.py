"""Names of tools that several layers know."""

from __future__ import annotations

from typing import Final

MCP_PREFIX: Final = "mcp__"
"""Prefix of the names of all tools of MCP servers."""
