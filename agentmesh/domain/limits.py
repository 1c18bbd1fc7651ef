"""Limits of a session besides its budget: how people write and read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from agentmesh.domain.errors import UsageError
from agentmesh.domain.text import one_line
from agentmesh.domain.timers import read_span

SPANS: Final = frozenset({"max_turn_seconds", "max_seconds"})
"""Limits that are spans of time, in seconds."""
MOST_SECONDS: Final = 10 * 365 * 86_400
"""The longest time of a session: the rest of it must also fit an integer of a session that is forked from this one."""
OPTIONS: Final[Mapping[str, str]] = {
    "depth": "max_depth",
    "children": "max_children",
    "agents": "max_agents",
    "living": "max_living",
    "spawns": "max_spawns",
    "ask-agents": "ask_agents",
    "unread": "max_unread",
    "turns": "max_turns",
    "turn-time": "max_turn_seconds",
    "time": "max_seconds",
}
"""Each limit by the word that people write: ``--max-turns``, ``/limits turns 50``."""
WHAT: Final[Mapping[str, str]] = {
    "max_depth": "depth of the tree",
    "max_children": "living children of one agent",
    "max_agents": "agents that work or wait",
    "max_living": "living agents",
    "max_spawns": "agents ever made",
    "ask_agents": "agents of one step that need a yes",
    "max_unread": "unread messages of one agent",
    "max_turns": "model calls in one turn",
    "max_turn_seconds": "time of one turn",
    "max_seconds": "time of the session",
}


def limit_named(text: str) -> str | None:
    """Return the limit that a person means: ``depth``, ``--max-depth`` or ``max_depth``; None if there is none."""
    word = text.strip().lower().removeprefix("--").replace("_", "-").removeprefix("max-")
    stored = {name.replace("_", "-").removeprefix("max-"): name for name in WHAT}
    return OPTIONS.get(word) or stored.get(word)


def word_of(name: str) -> str:
    """Return the word of a limit: ``turn-time`` for ``max_turn_seconds``."""
    return next(word for word, each in OPTIONS.items() if each == name)


def option_of(name: str) -> str:
    """Return the option of a limit: ``--max-turn-time`` for ``max_turn_seconds``."""
    word = word_of(name)
    return f"--{word}" if name.startswith("ask_") else f"--max-{word}"


class Limit(NamedTuple):
    """A limit of a session, and how much of it is used (``v_limits``)."""

    name: str
    cap: int | None
    """None: no limit."""
    used: int | None
    """By the agent that has used the most; None: not counted."""

    @property
    def amounts(self) -> tuple[str, str]:
        """The used amount and the limit, as people read them."""
        used = "" if self.used is None else self._shown(self.used)
        return used, "none" if self.cap is None else self._shown(self.cap)

    def _shown(self, value: int) -> str:
        return span(value) if self.name in SPANS else f"{value:,}"


def span(seconds: int) -> str:
    """Return ``1 d 2 h``, ``2 h 5 min``, ``3 min 20 s`` or ``45 s``."""
    for size, name, below, smaller in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if seconds >= size:
            rest = seconds % size // below
            return f"{seconds // size} {name} {rest} {smaller}" if rest else f"{seconds // size} {name}"
    return f"{seconds} s"


def read_limit(name: str, text: str) -> int | None:
    """Return the value that a person wrote for a limit: a number, a span of time, None for ``none``.

    Raise UsageError for other text.
    """
    given = text.strip().lower()
    if given == "none":
        return None
    if name in SPANS:
        return int(read_span(given))
    if not given.replace("_", "").isdecimal():
        raise UsageError(f"{one_line(text, 40)!r} is not a whole number.", hint="Write 50, or none for no limit.")
    return int(given.replace("_", ""))
