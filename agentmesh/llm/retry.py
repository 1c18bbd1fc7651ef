"""When to try a failed call again: full-jitter backoff, the server's Retry-After, and a limit."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import mktime_tz, parsedate_tz

from agentmesh.llm.failure import AttemptFailed

_FEWER = {"timeout": 1, "wordless": 1, "empty": 2, "garbage": 2, "cut": 3}
"""Lower limits of retries for failures that cost long waits or paid tokens."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long to retry; all times in seconds."""

    retries: int = 6
    first: float = 0.5
    """Upper end of the first pause; each next one is twice as long."""
    longest: float = 30.0
    """Upper end of any pause that the server has not asked for."""
    patience: float = 180.0
    """Total pauses of one call; a longer Retry-After is not waited for."""
    longest_pause: float = 600.0
    """The same while a server is overloaded (429, 503, 529) or away; such pauses use no retries: see ``pauses``."""
    jitter: Callable[[], float] = field(default=random.random)
    """Number from 0 to 1 that shortens a pause, so that many callers do not return at the same moment."""

    def waits_out(self, failure: AttemptFailed) -> bool:
        """Whether a call pauses until the failure has passed, instead of counting its attempts."""
        if failure.is_load:
            return True
        return failure.retry and failure.away and self.retries > 0 and self.longest_pause > 0

    def pause(self, failure: AttemptFailed, failures: int, paused: float) -> float | None:
        """Return the seconds until the next attempt, or None if there is none.

        ``failures`` counts the failed attempts, this one included; ``paused`` sums the pauses so far.
        """
        if not failure.retry or failures > min(self.retries, _FEWER.get(failure.kind, self.retries)):
            return None
        shortest = failure.after or 0.0
        seconds = shortest + self.jitter() * min(self.longest, self.first * 2.0 ** (failures - 1))
        if paused + shortest > self.patience:
            return None
        return min(seconds, max(self.patience - paused, shortest))


class Tries:
    """The attempts of one call."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._failures = 0
        self._paused = 0.0

    def pause(self, failure: AttemptFailed) -> float | None:
        """Count a failure; return the seconds until the next attempt, or None if there is none."""
        self._failures += 1
        pause = self._policy.pause(failure, self._failures, self._paused)
        self._paused += pause or 0.0
        return pause


def retry_after(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """Return the seconds that the server asks to wait (``retry-after-ms``, or ``retry-after`` as number or date).

    A date is compared with the server's own clock, if the answer says what that shows.
    """
    for name, divisor in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / divisor
        except ValueError:
            continue
        if math.isfinite(seconds):  # float() accepts "nan" and "inf"
            return max(seconds, 0.0)
    until, sent = _time(headers.get("retry-after", "")), _time(headers.get("date", ""))
    return None if until is None else max(until - (now() if sent is None else sent), 0.0)


def _time(date: str) -> float | None:
    """Return the time of a date in a header; None if it is none."""
    parsed = parsedate_tz(date)
    try:
        return None if parsed is None else mktime_tz(parsed)
    except (ValueError, OverflowError):
        return None
