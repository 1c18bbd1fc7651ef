"""Advice of errors in the screen's words: the database names commands of the shell."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

LISTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "answer, without arguments,": "/answer",
        "processes": "/processes",
        "ps --all": "/agents",
        "sessions": "/sessions",
        "timers": "/later",
        "todo": "/todo",
        "tree --all": "/agents",
    }
)
"""Commands of the shell that list something, each with the screen's own."""
_LISTS: Final = re.compile(rf"\bagentmesh ({'|'.join(LISTS)}) lists\b")


_LIMIT: Final = re.compile(r"\bagentmesh limits --max-([a-z-]+)")


def on_screen(advice: str) -> str:
    """Return advice with a command of the screen in place of one of the shell that lists or limits the same."""
    advice = _LIMIT.sub(r"/limits \1", advice)
    return _LISTS.sub(lambda found: f"{LISTS[found[1]]} lists", advice)
