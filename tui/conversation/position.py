"""What is kept of a scrollback without its widgets: the reading position and the folds."""

from __future__ import annotations

from typing import NamedTuple

from agentmesh.tui.conversation.entry import EntryView


class ReadingPosition(NamedTuple):
    """Where a person was in a scrollback, to return there."""

    key: str | None = None
    """The entry at the upper edge; None at the bottom."""
    above: int = 0
    """Lines of it above the edge."""


class Folds:
    """Which entries are unfolded: all calls or none, and the exceptions."""

    def __init__(self) -> None:
        self.all_calls = False
        self.different = set[str]()

    def wanted(self, view: EntryView) -> bool:
        """Return whether an entry is to be unfolded."""
        return view.can_fold and (view.key in self.different) != (self.all_calls and view.is_call)
