"""The window of mounted entries over all known entries, measured in screens."""

from __future__ import annotations

from collections.abc import Sequence

from agentmesh.tui.conversation.entries import Entry, height
from agentmesh.tui.session.rows import row_of

STEP, MOST = 2, 8
"""Screens to mount at once, and the most that stay mounted: a layout costs what is mounted."""


class Window:
    """``entries[first:last]`` of a list that grows at both ends."""

    def __init__(self, entries: Sequence[Entry] = ()) -> None:
        self.entries = list(entries)
        self.first = self.last = len(self.entries)
        self.columns, self.lines = 80, 24
        """Rows of the screen."""

    @property
    def mounted(self) -> list[Entry]:
        """The entries in the window."""
        return self.entries[self.first : self.last]

    @property
    def at_end(self) -> bool:
        """Whether the newest entry is in the window."""
        return self.last == len(self.entries)

    def place(self, key: str | None) -> int | None:
        """Return where an entry is, None when it is not known."""
        return next((at for at, entry in enumerate(self.entries) if entry.key == key), None) if key else None

    def place_of_row(self, seq: int) -> int | None:
        """Return which entry shows a row; a result is in its call's entry, and an unknown older row in the oldest."""
        rows = [row_of(entry.key) for entry in self.entries]
        if seq in rows:
            return rows.index(seq)
        known = [at for at, row in enumerate(rows) if row is not None and row <= seq]
        return known[-1] if known else 0 if rows else None

    def around(self, at: int | None) -> list[Entry]:
        """Move the window around a place, or to the end; return its entries."""
        self.last = len(self.entries) if at is None else self._step(at, 1)
        self.first = self._step(len(self.entries) if at is None else at, -1)
        return self.mounted

    def up(self) -> list[Entry]:
        """Let older entries in; return them."""
        before, self.first = self.first, self._step(self.first, -1)
        return self.entries[self.first : before]

    def down(self) -> list[Entry]:
        """Let newer entries in; return them."""
        before, self.last = self.last, self._step(self.last, 1)
        return self.entries[before : self.last]

    def drop_above(self) -> list[Entry]:
        """Take surplus entries out at the upper end; return them."""
        before, self.first = self.first, self.first + self._too_many(self.mounted)
        return self.entries[before : self.first]

    def drop_below(self) -> list[Entry]:
        """Take surplus entries out at the lower end; return them."""
        before, self.last = self.last, self.last - self._too_many(self.mounted[::-1])
        return self.entries[self.last : before]

    def prepend(self, older: Sequence[Entry], at: int) -> None:
        """Put older entries at a place before the window."""
        self.entries[at:at] = older
        self.first += len(older)
        self.last += len(older)

    def append(self, newer: Sequence[Entry]) -> bool:
        """Put newer entries at the end; return whether they are in the window, as they are if the end was."""
        was_at_end = self.at_end
        self.entries += newer
        if was_at_end:
            self.last = len(self.entries)
        return was_at_end

    @property
    def is_full(self) -> bool:
        """Whether something would have to go if more came."""
        return self._too_many(self.mounted) > 0

    def _step(self, start: int, towards: int) -> int:
        """Return how far a step from a place goes; at least one entry where there is one."""
        room, at = STEP * self.lines, start
        while room > 0 and 0 <= (following := at + min(towards, 0)) < len(self.entries):
            room -= height(self.entries[following], self.columns)
            at += towards
        return at

    def _too_many(self, mounted: Sequence[Entry]) -> int:
        """Return how many entries at the beginning of a list are too many; the last always stays."""
        heights = [height(entry, self.columns) for entry in mounted]
        excess, count = sum(heights) - MOST * self.lines, 0
        for lines in heights[:-1]:
            if excess < lines:
                break
            excess, count = excess - lines, count + 1
        return count
