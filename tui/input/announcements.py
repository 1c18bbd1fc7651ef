"""What the program has to say, and for how long: an answer to the last key, and what happened elsewhere meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_LEAST = 6.0
_A_CHARACTER = 0.06
"""Seconds that a saying stands: the least, or as long as reading it takes."""
_MOST = 4
"""Things that happened which are shown at once, the newest."""


class Announcement(NamedTuple):
    """One thing that is said."""

    text: str
    style: str
    until: float
    """``time.monotonic()``."""


class Announcements:
    """What is to be read now. An answer replaces the one before; what happened elsewhere replaces no answer."""

    def __init__(self) -> None:
        self._reply: Announcement | None = None
        self._elsewhere: list[Announcement] = []

    def reply(self, text: str, style: str, now: float) -> None:
        """Say something to the last key; an empty text takes the answer before away."""
        self._reply = Announcement(text, style, _until(text, now)) if text else None

    def announce(self, text: str, style: str, now: float) -> None:
        """Tell what happened elsewhere."""
        self._elsewhere = [*self._elsewhere, Announcement(text, style, _until(text, now))][-_MOST:]

    def clear(self) -> None:
        """Take everything away."""
        self._reply, self._elsewhere = None, []

    def current(self, now: float) -> Sequence[Sequence[Announcement]]:
        """Return what is to be read, in lines: the answer, and below it what happened."""
        self._elsewhere = [one for one in self._elsewhere if one.until > now]
        if self._reply is not None and self._reply.until <= now:
            self._reply = None
        return [line for line in ([self._reply] if self._reply else [], self._elsewhere) if line]

    def changes_at(self) -> float | None:
        """Return when the next of them has been read; None when nothing is said."""
        return min((one.until for one in [self._reply, *self._elsewhere] if one), default=None)


def _until(text: str, now: float) -> float:
    return now + max(_LEAST, len(text) * _A_CHARACTER)
