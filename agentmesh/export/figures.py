"""Numbers, times and the tree in the form for pages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Any, Final, TypeVar

Agent = TypeVar("Agent")

GLYPHS: Final = {"running": "◐", "idle": "○", "dead": "✗"}


def number(value: int) -> str:
    """Return a number with separators: ``12,345``."""
    return f"{value:,}"


def moment(at: datetime | None, zone: tzinfo | None) -> str:
    """Return date and time in a zone (None: this machine's)."""
    return f"{at.astimezone(zone):%Y-%m-%d %H:%M:%S}" if at else ""


def clock(at: datetime, zone: tzinfo | None) -> str:
    """Return the time of day."""
    return f"{at.astimezone(zone):%H:%M:%S}"


def offset(at: datetime, zone: tzinfo | None) -> str:
    """Return the offset of the zone: ``UTC+02:00``."""
    text = f"{at.astimezone(zone):%z}"
    return "UTC" if text in ("+0000", "-0000") else f"UTC{text[:3]}:{text[3:5]}"


def lasting(span: timedelta | float) -> str:
    """Return a duration: ``0.3 s``, ``12 s``, ``4 min 05 s``, ``2 h 07 min``, ``3 d 4 h``."""
    seconds = span.total_seconds() if isinstance(span, timedelta) else span
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"


def tree(
    agents: Sequence[Agent], key: Callable[[Agent], Any], parent: Callable[[Agent], Any]
) -> Iterator[tuple[str, Agent]]:
    """Yield each agent, children below parents, with its tree lines; an agent whose parent is missing is a root."""
    known = {key(agent) for agent in agents}
    children: dict[Any, list[Agent]] = defaultdict(list)
    for agent in agents:
        children[parent(agent) if parent(agent) in known else None].append(agent)
    # A loop instead of recursion: if limits were raised, a tree may be deeper than Python's stack.
    waiting = [("", "", agent) for agent in reversed(children[None])]
    while waiting:
        branch, deeper, agent = waiting.pop()
        yield branch, agent
        below = children[key(agent)]
        for child in reversed(below):
            last = child is below[-1]
            waiting.append((deeper + ("└─ " if last else "├─ "), deeper + ("   " if last else "│  "), child))
