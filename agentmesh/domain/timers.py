"""When a later message is due, as people write it."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from agentmesh.domain import spans
from agentmesh.domain.errors import UsageError
from agentmesh.domain.text import one_line


class When(NamedTuple):
    """When a message is due: at a time or after seconds, and then every so many seconds; or by a cron expression."""

    at: datetime | None = None
    after: float | None = None
    every: float | None = None
    cron: str | None = None
    """With its time zone, as ``store.cron`` reads it: ``0 9 * * 1-5 Europe/Berlin``."""

    @property
    def is_later(self) -> bool:
        """Whether anything is given."""
        return self != When()


def read_span(text: str) -> float:
    """Return the seconds of ``90``, ``90s``, ``10m``, ``2h`` or ``1d``; raise UsageError for other text."""
    given = text.strip()
    seconds = spans.read(f"{given}s" if given.isdecimal() else given)
    if seconds is not None:
        return float(seconds)
    raise UsageError(f"{one_line(text, 40)!r} is not a span of time.", hint="Write 90s, 10m, 2h or 1d.")


def read_time(text: str) -> datetime:
    """Return the time of ``2026-11-22T14:30+01:00``; raise UsageError for other text and without a time zone."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise UsageError(
            f"{one_line(text, 40)!r} is not a time with its time zone.", hint="Write 2026-11-22T14:30+01:00, or ...Z."
        )
    return at
