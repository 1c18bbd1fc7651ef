"""The recipients of a message to several agents, if they are not listed by name."""

from __future__ import annotations

from enum import StrEnum


class Audience(StrEnum):
    """A group of living agents, around an agent that is in the middle. Agents cannot have these names."""

    CHILDREN = "children"
    """Its children."""
    SESSION = "session"
    """All agents of its session, without the sender."""
