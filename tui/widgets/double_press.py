"""A key that means more when pressed again within a moment."""

from __future__ import annotations

MOMENT = 2.0
"""Seconds within which a second press counts, unless another key comes between."""


class DoublePress:
    """Tells a second press from a first one; a third press counts as a first again."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._before: float | None = None

    def pressed(self, now: float) -> bool:
        """Return whether this is the second press; ``now`` is monotonic."""
        is_second = self.is_open(now)
        self._before = None if is_second else now
        return is_second

    def begin(self, now: float) -> None:
        """Count this press as a first one; ``now`` is monotonic."""
        self._before = now

    def end(self) -> None:
        """Let the next press be a first one: something else was done since."""
        self._before = None

    def is_open(self, now: float) -> bool:
        """Return whether a press would be the second one; ``now`` is monotonic."""
        return self.left(now) >= 0

    def left(self, now: float) -> float:
        """Return for how many seconds a press would be the second one; negative if it would be a first one."""
        return -1.0 if self._before is None else self._before + self._seconds - now
