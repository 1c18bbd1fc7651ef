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


class Offer(NamedTuple):
    """What the next key would do, and for how many seconds."""

    text: str
    seconds: float


class Announcements:
    """The current texts. A reply replaces the last reply; announcements replace no reply."""

    def __init__(self) -> None:
        self._reply: Announcement | None = None
        self._offer: Announcement | None = None
        self._elsewhere: list[Announcement] = []

    def reply(self, text: str, style: str, now: float, offer: Offer | None = None) -> None:
        """Reply to the last key, with an offer beside it; an empty text removes the last reply."""
        self._reply = Announcement(text, style, _until(text, now)) if text else None
        self._offer = Announcement(offer.text, "$text-warning", now + offer.seconds) if offer else None

    def announce(self, text: str, style: str, now: float) -> None:
        """Tell what happened elsewhere."""
        self._elsewhere = [*self._elsewhere, Announcement(text, style, _until(text, now))][-_MOST:]

    def clear(self) -> None:
        """Take everything away."""
        self._reply, self._offer, self._elsewhere = None, None, []

    def current(self, now: float) -> Sequence[Sequence[Announcement]]:
        """Return the current lines: the reply with its offer, and below them the announcements."""
        self._elsewhere = [one for one in self._elsewhere if one.until > now]
        if self._reply is not None and self._reply.until <= now:
            self._reply = None
        if self._offer is not None and self._offer.until <= now:
            self._offer = None
        return [line for line in ([one for one in (self._reply, self._offer) if one], self._elsewhere) if line]

    def changes_at(self) -> float | None:
        """Return when the next text ends; None if there is none."""
        return min((one.until for one in [self._reply, self._offer, *self._elsewhere] if one), default=None)


def _until(text: str, now: float) -> float:
    return now + max(LEAST, len(text) * _A_CHARACTER)
