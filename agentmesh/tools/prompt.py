"""The system prompt of a session, or of a sub-agent."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from agentmesh.config import instructions


def system_prompt(workdir: Path, words: str | None = None, skills: str = "") -> str:
    """Return the system prompt of a session, or of a sub-agent, followed by the project's instructions.

    ``words``: the prompt of the sub-agent's type. ``skills``: the section about skills, for agents with the tool that
    reads them. It holds no date, id or name, so that forks share the provider's cache.
    """
    text = words or (files("agentmesh.tools") / "system.md").read_text(encoding="utf-8").strip()
    place = f"The working directory is {workdir}; relative paths are below it."
    return "\n\n".join(part for part in (text, place, skills, instructions.read(workdir).text) if part)
