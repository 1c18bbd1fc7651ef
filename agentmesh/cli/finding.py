"""A finding of ``agentmesh doctor`` about one thing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Health(StrEnum):
    """The state of one thing."""

    OK = "ok"
    NOTE = "note"
    """Not wrong, but worth knowing."""
    BROKEN = "broken"

    @property
    def glyph(self) -> str:
        """The sign before the words."""
        return {Health.OK: "✓", Health.NOTE: "·", Health.BROKEN: "✗"}[self]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked."""

    state: Health
    about: str
    words: str
    hint: str = ""
