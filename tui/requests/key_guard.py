"""Which keys count while a dialog appears: none that was typed before a person can have seen it."""

from __future__ import annotations

GRACE = 0.5
"""Seconds after a dialog has appeared in which no key counts."""
_LONGEST = 2.0
"""Seconds after which keys count even if they never paused."""


class KeyGuard:
    """Ignores keys typed before a person can have seen a dialog; times are ``time.monotonic()``.

    A person who goes on typing has not seen it: each key in the first moment extends the moment, up to an end.
    """

    def __init__(self, grace: float = GRACE) -> None:
        self._grace = grace
        self._until, self._end = float("inf"), float("inf")

    def appeared(self, now: float) -> None:
        """Begin the first moment."""
        self._until, self._end = now + self._grace, now + max(_LONGEST, self._grace)

    def is_over(self, now: float) -> bool:
        """Return whether the moment has passed."""
        return now >= self._until

    def counts(self, at: float) -> bool:
        """Return whether a key pressed at this time counts; if not, it extends the moment."""
        if self.is_over(at):
            return True
        if self._end < float("inf"):
            self._until = min(max(self._until, at + self._grace), self._end)
        return False
