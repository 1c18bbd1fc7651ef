"""The words that models read: descriptions of tools from ``prompts/<tool>.md``, and the system prompt.

``prompts/compact`` has what differs for models with a small context, which may be small themselves.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

_PROMPTS: Final = files("agentmesh.tools") / "prompts"


@cache
def system(*, compact: bool = False) -> str:
    """Return the system prompt. The compact one does not speak of parents: a fork's first message names its own."""
    return _read("compact/system" if compact else "system")


@cache
def description(tool: str) -> str:
    """Return the description of a tool."""
    return _read(tool)


@cache
def compact_description(tool: str) -> str | None:
    """Return the description of a tool in the compact set, None if it is the same as in the full set."""
    return _read(f"compact/{tool}") if (_PROMPTS / "compact" / f"{tool}.md").is_file() else None


class Described:
    """A tool whose description is the page of its name in ``prompts``."""

    name: str

    @property
    def description(self) -> str:
        """The description that the model reads."""
        return description(self.name)


def _read(name: str) -> str:
    return (_PROMPTS / f"{name}.md").read_text(encoding="utf-8").strip()
