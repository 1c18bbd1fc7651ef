"""The answer in progress as a screen has it, put together from pieces that come live and pieces that are repeated.

A screen that opens in the middle of an answer has missed its beginning. It asks for it, and the worker repeats the text
on a channel of that screen. A live piece that comes meanwhile is left out, because a repeated one holds it too.
"""

from __future__ import annotations

from typing import NamedTuple

from agentmesh.tui.session.hints import StreamedPart

_GAP = "…"
"""Stands for missed text until it is repeated."""
_REPEATING = 5.0
"""The most seconds between two repeated pieces."""
_FIRST_PAUSE = 1.0
"""Seconds until missed text is asked for again; twice as many each time."""


class Shown(NamedTuple):
    """The text of a piece that is to be shown."""

    text: str
    begins: bool
    """Whether it replaces what was shown."""


class PartialAnswer:
    """The part of one agent's answer that was shown. All times are ``time.monotonic()``."""

    def __init__(self) -> None:
        self.after = -1
        """The row that the answer follows; -1: there is none."""
        self._place = 0
        """How much of it was shown."""
        self._is_whole = False
        """Whether that is all of it, from its beginning."""
        self._repeated_at: float | None = None
        """When the last repeated piece came."""
        self._ask_at: float | None = float("-inf")
        """When to ask for the beginning; None for not."""
        self._pause = _FIRST_PAUSE

    def end(self) -> None:
        """Note that its row was read."""
        self._begin(-1)
        self._ask_at, self._pause = None, _FIRST_PAUSE

    def lose(self) -> bool:
        """Note that pieces may have been missed; return whether text was shown that is void now."""
        was_shown = self.after >= 0
        self._begin(-1)
        self._ask_at, self._pause = float("-inf"), _FIRST_PAUSE
        return was_shown

    def is_to_ask(self, now: float) -> bool:
        """Return whether to ask for the beginning now; then it is asked."""
        if self._ask_at is None or now < self._ask_at:
            return False
        self._ask_at = None
        return True

    def take(self, piece: StreamedPart, now: float) -> Shown | None:
        """Take a piece; return the part to show, None if there is none."""
        return self._take_repeated(piece, now) if piece.is_repeated else self._take_live(piece, now)

    def _take_live(self, piece: StreamedPart, now: float) -> Shown | None:
        begins = piece.after != self.after or piece.place < self._place
        if begins:
            self._begin(piece.after)
            self._is_whole = piece.place == 0
        elif piece.place > self._place and self._is_repeating(now):
            return None
        is_missed = piece.place > self._place
        if is_missed:
            self._miss(now)
        self._place = piece.place + len(piece.text)
        return Shown((_GAP if is_missed else "") + piece.text, begins)

    def _take_repeated(self, piece: StreamedPart, now: float) -> Shown | None:
        is_ours = piece.after == self.after
        begins = piece.place == 0 and not (is_ours and self._is_whole)
        if begins:
            self._begin(piece.after)
            self._is_whole = True
        elif not (is_ours and self._is_repeating(now) and piece.place <= self._place):
            return None
        self._repeated_at = now
        text = piece.text[self._place - piece.place :]
        self._place += len(text)
        return Shown(text, begins)

    def _is_repeating(self, now: float) -> bool:
        return self._repeated_at is not None and now - self._repeated_at < _REPEATING

    def _begin(self, after: int) -> None:
        self.after, self._place = after, 0
        self._is_whole, self._repeated_at = False, None

    def _miss(self, now: float) -> None:
        self._is_whole = False
        if self._ask_at is None:
            self._ask_at = now + self._pause - _FIRST_PAUSE
            self._pause *= 2
