"""The system prompt of a session, or of a sub-agent."""

from __future__ import annotations

from pathlib import Path

from agentmesh.config import instructions
from agentmesh.domain import workplace
from agentmesh.tools.words import system


def system_prompt(project: Path, words: str | None = None, skills: str = "", place: str = "") -> str:
    """Return the system prompt of a session, or of a sub-agent, with a part about its directory at the end.

    That part, with the project's instructions, is marked: models are sent it in the conversation's first message.
    ``words`` replace the usual ones: words of a sub-agent's type, or of the compact set. ``skills``: the
    section about skills, for agents with the tool that reads them. ``place`` says where a sub-agent works, if not in
    the project itself. The prompt holds no date, id or name, so that forks share the provider's cache.
    """
    text = words or system()
    place = place or place_words(project)
    own = "\n\n".join(part for part in (place, skills, instructions.read(project).text) if part)
    return f"{text}\n\n{workplace.framed(own)}"


def place_words(workdir: Path) -> str:
    """Return the words that tell an agent about its working directory."""
    return f"The working directory is {workdir}; relative paths are below it."


def own_place_words(project: Path) -> str:
    """Return the words that tell a sub-agent about its own tree, which is not made yet."""
    return (
        f"The working directory is a copy of {project} for you alone: use relative paths, never those of {project}. "
        "Others get what you change by merge."
    )
