"""A list of ways to answer, chosen by key, by number, or with arrows and Enter. It takes no focus.

No option is highlighted at first, so that an Enter that ends a sentence chooses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.message import Message

from agentmesh.tui.requests.options import Option
from agentmesh.tui.widgets.plain import Plain

_BETWEEN = 2
"""Cells between a label and its meaning."""


class _Line(Horizontal):
    """Key and label, and beside them the meaning, which wraps separately."""

    def __init__(self, place: int, option: Option, wide: int) -> None:
        super().__init__()
        self.place = place
        self._option = option
        self._mark = Plain(classes="mark")
        self._label = Plain(option.label, classes="label")
        self._label.styles.width = wide + _BETWEEN if option.explained else "1fr"

    def compose(self) -> ComposeResult:
        """Show mark and key, the label, and its meaning."""
        yield self._mark
        yield self._label
        if self._option.explained:
            yield Plain(self._option.explained, classes="explained")

    def show(self, *, here: bool) -> None:
        """Show whether Enter would choose it."""
        key = f"{self._option.key or ' '} "
        self._mark.update(Content.assemble(("❯ " if here else "  ", "$text-primary"), (key, "bold $text-primary")))
        self._label.set_class(here, "-here")


class Choices(VerticalScroll, can_focus=False):
    """Shows options; ``press`` and ``named`` return the chosen one, a click posts ``Clicked``."""

    class Clicked(Message):
        """An option was clicked."""

        def __init__(self, option: Option) -> None:
            super().__init__()
            self.option = option

    def __init__(self, options: Sequence[Option]) -> None:
        super().__init__()
        self.options = options
        self._at: int | None = None
        wide = max((len(option.label) for option in options if option.explained), default=0)
        self._lines = [_Line(place, option, wide) for place, option in enumerate(options)]

    def compose(self) -> ComposeResult:
        """Show a line for each."""
        yield from self._lines

    def on_mount(self) -> None:
        """Show the options."""
        self._draw()

    def press(self, event: events.Key) -> Option | None:
        """Move, or return what Enter chooses."""
        if event.key in ("up", "down") and self.options:
            before_first = -1 if event.key == "down" else 0
            at = before_first if self._at is None else self._at
            self._at = (at + (1 if event.key == "down" else -1)) % len(self.options)
            self._draw()
            self._lines[self._at].scroll_visible(animate=False)
            return None
        if event.key == "enter":
            return None if self._at is None else self.options[self._at]
        return None

    def named(self, character: str) -> Option | None:
        """Return the option with this key or number."""
        by_key = (option for option in self.options if option.key == character)
        number = int(character) if character in "123456789" else 0
        by_number = self.options[number - 1] if 0 < number <= len(self.options) else None
        return next(by_key, by_number)

    def on_click(self, event: events.Click) -> None:
        """Choose the clicked option."""
        above = event.widget.ancestors_with_self if event.widget else ()
        for line in (widget for widget in above if isinstance(widget, _Line)):
            self.post_message(self.Clicked(self.options[line.place]))

    def _draw(self) -> None:
        for line in self._lines:
            line.show(here=line.place == self._at)
