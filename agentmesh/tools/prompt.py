"""The system prompt of a session, or of a sub-agent."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from agentmesh.config import instructions


def system_prompt(project: Path, words: str | None = None, skills: str = "", place: str = "") -> str:
    """Return the system prompt of a session, or of a sub-agent, followed by the project's instructions.

    ``words``: the prompt of the sub-agent's type. ``skills``: the section about skills, for agents with the tool that
    reads them. ``place`` says where a sub-agent works, if not in the project itself. The prompt holds no date, id or
    name, so that forks share the provider's cache.
    """
    text = words or (files("agentmesh.tools") / "system.md").read_text(encoding="utf-8").strip()
    place = place or place_words(project)
    return "\n\n".join(part for part in (text, place, skills, instructions.read(project).text) if part)


def place_words(workdir: Path) -> str:
    """Return what an agent is told about its working directory."""
    return f"The working directory is {workdir}; relative paths are below it."


def own_place_words(project: Path) -> str:
    """Return what a sub-agent is told whose own tree is not made yet."""
    return (
        f"The working directory is a copy of {project} for you alone: use relative paths, never those of {project}. "
        "Others get what you change by merge."
    )
