"""Makes the tree of all agents when it is first wanted, and keeps it up to date while it is on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmesh.tui.board.navigation import Navigation

if TYPE_CHECKING:
    from textual.screen import Screen

    from agentmesh.tui.board.tree import SideTree


class TreeOpener:
    """The tree of one screen, mounted in its ``#body``: the first frame need not wait for it."""

    def __init__(self, screen: Screen[None], navigation: Navigation) -> None:
        self._screen, self._navigation = screen, navigation
        self._tree: SideTree | None = None

    def turn(self) -> None:
        """Switch to the next of: no tree, the tree, the tree with finished and silent agents."""
        if self._navigation.board is None:
            return
        if self._tree is None:
            from agentmesh.tui.board.tree import SideTree

            self._tree = SideTree()
            self._screen.query_one("#body").mount(self._tree)
        self._tree.turn(self._navigation.board)

    def refresh(self) -> None:
        """Show the agents as they are now, if the tree is on."""
        board, face = self._navigation.board, self._navigation.face
        if board and face and self._tree is not None and self._tree.display:
            self._tree.show(board, face.id)
