"""Texts for the last line, and how long each stays: replies to the last key, and announcements of events elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

LEAST = 6.0
_A_CHARACTER = 0.06
"""Seconds that a text stays: at least the first, or as long as reading it takes."""
_MOST = 4
"""The most announcements shown at once, the newest."""


class Announcement(NamedTuple):
    """One text in the last line."""

    text: str
    style: str
    until: float
    """``time.monotonic()``."""


class Announcements:
    """The current texts. A reply replaces the last reply; announcements replace no reply."""

    def __init__(self) -> None:
        self._reply: Announcement | None = None
        self._elsewhere: list[Announcement] = []

    def reply(self, text: str, style: str, now: float, seconds: float | None = None) -> None:
        """Reply to the last key, for ``seconds`` if given; an empty text removes the last reply."""
        until = _until(text, now) if seconds is None else now + seconds
        self._reply = Announcement(text, style, until) if text else None

    def announce(self, text: str, style: str, now: float) -> None:
        """Tell what happened elsewhere."""
        self._elsewhere = [*self._elsewhere, Announcement(text, style, _until(text, now))][-_MOST:]

    def clear(self) -> None:
        """Take everything away."""
        self._reply, self._elsewhere = None, []

    def current(self, now: float) -> Sequence[Sequence[Announcement]]:
        """Return the current lines: the reply, and below it the announcements."""
        self._elsewhere = [one for one in self._elsewhere if one.until > now]
        if self._reply is not None and self._reply.until <= now:
            self._reply = None
        return [line for line in ([self._reply] if self._reply else [], self._elsewhere) if line]

    def changes_at(self) -> float | None:
        """Return when the next text ends; None if there is none."""
        return min((one.until for one in [self._reply, *self._elsewhere] if one), default=None)


def _until(text: str, now: float) -> float:
    return now + max(LEAST, len(text) * _A_CHARACTER)
