"""An agent's activity as short text for people."""

from __future__ import annotations

import re
from typing import Final

from agentmesh.domain.text import one_line

_PAUSE: Final = re.compile(r"((?:compacting: )?(?:paused|retrying in) \d+ s)( \(gives up in \d+ s\))?: (.*)", re.DOTALL)
_LONG: Final = 80
"""Characters of the longest reason that an operating system gives."""
_QUEUE: Final = re.compile(r"waiting for (?:the first bill|room in the budget)")


def is_held_up(activity: str) -> bool:
    """Return whether the agent's model call waits for its server, or for the bills of other calls."""
    return (_PAUSE.match(activity) or _QUEUE.match(activity)) is not None


def fitted(activity: str, width: int) -> str:
    """Return the activity on one line of at most ``width`` characters.

    A pause keeps its reason, which comes last: the server's address is cut first, then the remaining patience.
    """
    found = _PAUSE.fullmatch(one_line(activity, len(activity)))
    if found is None or len(found[0]) <= width:
        return one_line(activity, width)
    head, left, why = found[1], found[2] or "", found[3]
    reason = why.rpartition(": ")[2]
    for lead in (f"{head}{left}: ", f"{head}: "):
        room = width - len(lead)
        if room >= len(why):
            return lead + why
        if room > len(reason):
            tail = max(len(reason), min(room * 3 // 4, room - 1))
            return f"{lead}{why[: room - 1 - tail]}…{why[-tail:]}"
    # Of a long text, as a proxy's page, the beginning says more: which server failed, with which status.
    return one_line(f"{head}: {why if len(reason) > _LONG else reason}", width)
