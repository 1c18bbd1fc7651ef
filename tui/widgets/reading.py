"""The base of pages that are only read: letters mean nothing in them, so a word that is typed is for the input."""

from __future__ import annotations

from collections.abc import Callable

from textual import events

from agentmesh.tui.widgets.dialog import Dialog

WORD = 1.0
"""Seconds within which two letters are a word; one alone may have been meant to scroll."""


class ReadingPage(Dialog[None]):
    """Closes when a word is typed, and gives it to the input below."""

    def __init__(self, type_on: Callable[[str], None]) -> None:
        """``type_on`` takes what was typed."""
        super().__init__()
        self._type_on = type_on
        self._typed, self._typed_at = "", 0.0
        self._is_over = False

    def on_key(self, event: events.Key) -> None:
        """Keep a letter, also while its key is held; at another one, leave and pass all on."""
        if not (event.is_printable and event.character):
            return
        before = self._typed if event.time - self._typed_at < WORD else ""
        if event.key in self.active_bindings and not (before or self._is_over):
            return  # q, by itself
        event.stop()
        if self._is_over:
            self._type_on(event.character)
            return
        self._typed, self._typed_at = before + event.character, event.time
        if len(set(self._typed)) > 1:
            self._is_over = True
            self._type_on(self._typed)
            self.dismiss(None)
