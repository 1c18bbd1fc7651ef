"""The descriptions of tools that the model reads, from ``prompts/<tool>.md``."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def description(tool: str) -> str:
    """Return the description of a tool."""
    return (files("agentmesh.tools") / "prompts" / f"{tool}.md").read_text(encoding="utf-8").strip()
