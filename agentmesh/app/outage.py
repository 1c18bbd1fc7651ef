"""How long a reader that waits for agents tolerates a database that is away."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from agentmesh.domain.errors import DatabaseUnreachable

_MOMENT: Final = 2.0
"""Seconds between two looks while the database is away."""
_APART: Final = 60.0
"""Seconds without a failure after which the next failure begins a new outage."""
_LONGEST: Final = 300.0
"""Seconds; no reader waits longer for a database."""


class Outage:
    """Measures the outages that one reader meets. It only counts: the reader waits itself, so that it can be woken."""

    def __init__(self) -> None:
        self._since = self._last = -math.inf

    def pause(self, error: DatabaseUnreachable) -> float:
        """Return the seconds to wait before the next look; raise the error once the outage is too long."""
        now = time.monotonic()
        if now - self._last > _APART:
            self._since = now
        self._last = now
        if now - self._since > _LONGEST:
            raise error
        return _MOMENT

    def end(self) -> None:
        """Record that the database has answered, so that the next failure begins a new outage."""
        self._since = self._last = -math.inf
