"""The descriptions of tools that the model reads, from ``prompts/<tool>.md`` and ``prompts/compact/<tool>.md``."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def description(tool: str) -> str:
    """Return the description of a tool."""
    return (files("agentmesh.tools") / "prompts" / f"{tool}.md").read_text(encoding="utf-8").strip()


@cache
def compact_description(tool: str) -> str | None:
    """Return the description of a tool in the compact set, None if it is the same as in the full set."""
    file = files("agentmesh.tools") / "prompts" / "compact" / f"{tool}.md"
    return file.read_text(encoding="utf-8").strip() if file.is_file() else None
