"""Opens the board over the screen, keeps it mounted when it is closed, and hands it news while it is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmesh.tui.board.navigation import Navigation

if TYPE_CHECKING:
    from textual.screen import Screen

    from agentmesh.tui.board.board_rows import Asks
    from agentmesh.tui.board.board_screen import BoardScreen
    from agentmesh.tui.input.keys import Keymap
    from agentmesh.tui.session.state import Board


class BoardOpener:
    """The board of one screen."""

    def __init__(self, screen: Screen[None], keymap: Keymap, navigation: Navigation) -> None:
        self._screen, self._keymap, self._navigation = screen, keymap, navigation
        self.shown: BoardScreen | None = None
        """While it is open."""
        self._kept: BoardScreen | None = None
        """Kept when it is closed: to mount it again would take 40 ms of the next key."""
        self._wanted: Asks | None = None
        """Set if it is to be opened as soon as the session is there."""

    def open(self, asks: Asks) -> None:
        """Show all agents at a glance, once the session is there; ``asks`` says what a request asks."""
        board = self._navigation.board
        self._wanted = asks if board is None else None
        if board is None:
            return
        from agentmesh.tui.board.board_screen import BoardScreen

        if self._kept is None:
            self._kept = BoardScreen(board, self._keymap, asks)
            self._screen.app.install_screen(self._kept, f"board of {board.session.id}")
        self.shown = self._kept
        self._kept.begin(board)
        self._screen.app.push_screen(self._kept, self._closed)

    def _closed(self, _: None) -> None:
        self.shown = None
        if board := self._navigation.board:
            self._navigation.show_board(board)  # what was not looked at is now

    def show_board(self, board: Board) -> None:
        """Show the session as it is now, if the board is open, or open it if it was wanted before."""
        wanted, self._wanted = self._wanted, None
        if self.shown:
            self.shown.show_board(board)
        elif wanted and self._screen.app.screen is self._screen:
            self.open(wanted)

    def give_up(self) -> None:
        """Give up the kept board: the screen is left."""
        if self._kept and self._screen.app.is_running:
            self._screen.app.uninstall_screen(self._kept)
