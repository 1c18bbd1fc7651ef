"""The base of pages that are only read: letters mean nothing in them, so a word that is typed is for the input."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.binding import Binding

from agentmesh.tui.widgets.dialog import Dialog

WORD = 1.0
"""Seconds within which two letters are a word; one alone may have been meant to scroll."""
BURST = 0.3
"""The same once a letter has closed the page: a word that is typed this fast was begun before."""


class ReadingPage(Dialog[None]):
    """A page without a field. The app closes it for a word or a paste, and gives that to the input below."""

    BINDINGS = [Binding("q", "leave", show=False)]  # noqa: RUF012 - Textual's form

    def __init__(self) -> None:
        super().__init__()
        self._typed: list[events.Key] = []

    def typed_before(self, event: events.Key | events.Paste) -> Sequence[events.Key] | None:
        """Return the letters before this key or paste if all is for the input; else None, and keep the letter.

        Keep a letter also while its key is held; a different one makes a word.
        """
        within = WORD if self.is_current else BURST
        before = self._typed if self._typed and event.time - self._typed[-1].time < within else []
        if isinstance(event, events.Paste):
            return before
        self._typed = [*before, event] if event.is_printable else []
        return before if len({key.character for key in self._typed}) > 1 else None

    def action_leave(self) -> None:
        """Close, unless the app has closed it since the key was pressed."""
        if self.is_current:
            super().action_leave()
