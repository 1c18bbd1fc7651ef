"""Times that a person writes: a date, a time of today, or how long ago."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from agentmesh.domain import spans
from agentmesh.domain.errors import UsageError
from agentmesh.domain.text import one_line

_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?")


def read_moment(text: str, now: datetime) -> datetime:
    """Return the time that is meant, in the reader's time zone unless it names one.

    Accepted are ``14:30``, ``14:30:05`` (the most recent one), ``2026-11-22 14:30``, ``10m`` and ``2h ago``. Raise
    UsageError for other text and for a time in the future.
    """
    given = text.strip().lower()
    local = now.astimezone()
    if clock := _CLOCK.fullmatch(given):
        at = local.replace(hour=int(clock[1]), minute=int(clock[2]), second=int(clock[3] or 0), microsecond=0)
        return at if at <= local else at - timedelta(days=1)
    try:
        if (ago := spans.read(given.removesuffix(" ago"))) is not None:
            return local - timedelta(seconds=ago)
        at = datetime.fromisoformat(text.strip())
        at = at if at.tzinfo else at.astimezone()
    except (ValueError, OverflowError):
        raise UsageError(
            f"{one_line(text, 40)!r} is not a time.", hint="Write 14:30, 2026-11-22 14:30, 10m or 2h ago."
        ) from None
    if at > now:
        raise UsageError(f"{one_line(text, 40)!r} is in the future.", hint="Write a time in the past.")
    return at
