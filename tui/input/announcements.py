"""What the program has to say, and for how long: an answer to the last key, and what happened elsewhere meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_LEAST = 6.0
_A_CHARACTER = 0.06
"""Seconds that a saying stands: the least, or as long as reading it takes."""
_MOST = 4
"""Things that happened which are shown at once, the newest."""


class Saying(NamedTuple):
    """One thing that is said."""

    text: str
    style: str
    until: float
    """``time.monotonic()``."""


class Sayings:
    """What is to be read now. An answer replaces the one before; what happened elsewhere replaces no answer."""

    def __init__(self) -> None:
        self._answer: Saying | None = None
        self._happened: list[Saying] = []

    def answer(self, text: str, style: str, now: float) -> None:
        """Say something to the last key; an empty text takes the answer before away."""
        self._answer = Saying(text, style, _until(text, now)) if text else None

    def happened(self, text: str, style: str, now: float) -> None:
        """Tell what happened elsewhere."""
        self._happened = [*self._happened, Saying(text, style, _until(text, now))][-_MOST:]

    def clear(self) -> None:
        """Take everything away."""
        self._answer, self._happened = None, []

    def current(self, now: float) -> Sequence[Sequence[Saying]]:
        """Return what is to be read, in lines: the answer, and below it what happened."""
        self._happened = [one for one in self._happened if one.until > now]
        if self._answer is not None and self._answer.until <= now:
            self._answer = None
        return [line for line in ([self._answer] if self._answer else [], self._happened) if line]

    def changes_at(self) -> float | None:
        """Return when the next of them has been read; None when nothing is said."""
        return min((one.until for one in [self._answer, *self._happened] if one), default=None)


def _until(text: str, now: float) -> float:
    return now + max(_LEAST, len(text) * _A_CHARACTER)
