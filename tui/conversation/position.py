"""The state of a scrollback that is kept without its widgets: the reading position and the folds."""

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
    """Which entries are unfolded: those that a person unfolded, and all calls or those that open themselves."""

    def __init__(self) -> None:
        self.all_calls: bool | None = None
        """Whether a person unfolded or folded all calls; None: neither yet."""
        self.chosen: dict[str, bool] = {}
        """The entries that a person unfolded (True) or folded since, by key."""

    def wanted(self, view: EntryView) -> bool:
        """Return whether an entry is to be unfolded."""
        by_itself = self.all_calls if view.is_call and self.all_calls is not None else view.opens_itself
        return view.can_fold and self.chosen.get(view.key, by_itself)

    def toggle_calls(self) -> None:
        """Unfold all calls, or fold them."""
        self.all_calls = not self.all_calls
        self.chosen.clear()
