"""The list of completions above the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

if TYPE_CHECKING:
    from agentmesh.tui.commands.complete import Completion


_MOST = 8


class CompletionList(OptionList, can_focus=False):
    """The completions with their descriptions; the input keeps the focus and moves the highlight."""

    def __init__(self) -> None:
        super().__init__(id="completion", markup=False)
        self._choices: Sequence[Completion] = ()
        self.display = False

    def show(self, choices: Sequence[Completion], above: int) -> None:
        """Show these, their lower edge so many lines above the screen's; none hides the list."""
        self._choices = choices
        self.display = bool(choices)
        self.clear_options()
        wide = max((len(choice.shown) for choice in choices), default=0)
        for choice in choices:
            described = (f"  {choice.description}", "$dim")
            self.add_option(Option(Content.assemble((choice.shown.ljust(wide), "bold"), described)))
        if choices:
            self.highlighted = 0
            self.styles.height = min(len(choices), _MOST)
            self.styles.margin = (0, 1, above, 1)

    @property
    def is_open(self) -> bool:
        """Whether there is something to choose."""
        return bool(self._choices)

    @property
    def chosen(self) -> Completion | None:
        """The highlighted completion."""
        return self._choices[self.highlighted] if self._choices and self.highlighted is not None else None

    def move(self, by: int) -> None:
        """Move the highlight, round at the ends."""
        if self._choices:
            self.highlighted = ((self.highlighted or 0) + by) % len(self._choices)

    def at(self, index: int) -> Completion:
        """Return a completion by its place in the list."""
        return self._choices[index]
