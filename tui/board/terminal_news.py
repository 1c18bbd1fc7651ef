"""When the screen tells something outside of itself: it owns the terminal's title and gathers what is new."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from agentmesh.tui.board.title_and_notifications import POP_TITLE, PUSH_TITLE, Notifier, set_title

if TYPE_CHECKING:
    from textual.app import App

    from agentmesh.config.schema import Tui
    from agentmesh.tui.session.state import Board

_GATHER = 1.0
"""Seconds during which news gathers before the desktop is notified."""


class TerminalNews:
    """Title, bell and notifications of one app; silent until the settings are known."""

    def __init__(self, app: App[None], write: Callable[[str], None]) -> None:
        """``write`` hands a sequence to the terminal."""
        self._app, self._write = app, write
        self._notifier: Notifier | None = None
        self._has_title = self._is_gathering = False

    def begin(self, settings: Tui, environ: Mapping[str, str]) -> None:
        """Tell what the settings allow from now on."""
        self._notifier = Notifier(self._write, environ, notify=settings.notify, rings=settings.bell)
        self._has_title = settings.title
        self.begin_title()

    def begin_title(self) -> None:
        """Have the terminal keep its title for the end, and set ours."""
        if self._has_title:
            self._write(PUSH_TITLE + set_title(self._app.title))

    def show_title(self, title: str) -> None:
        """Set the terminal's title, if it is ours to set."""
        if self._has_title:
            self._write(set_title(title))

    def end_title(self, _: object = None) -> None:
        """Give the terminal its title back."""
        if self._has_title:
            self._write(POP_TITLE)

    def take(self, board: Board) -> None:
        """Tell soon what is new on a board, if nobody looks at the screen."""
        notifier = self._notifier
        if notifier and notifier.take(board, is_focused=self._app.app_focus) and not self._is_gathering:
            self._is_gathering = True
            self._app.set_timer(_GATHER, self._tell)

    def _tell(self) -> None:
        self._is_gathering = False
        if self._notifier:
            self._notifier.tell(is_focused=self._app.app_focus)
