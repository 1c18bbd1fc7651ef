"""A dialog with a text that is too long for the last line."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll

from agentmesh.tui.widgets.plain import Plain
from agentmesh.tui.widgets.reading import ReadingPage


class Page(ReadingPage):
    """A title and a text that can be scrolled; foreign text, so never markup."""

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title, self._text = title, text

    def compose(self) -> ComposeResult:
        """Show title, text and how to leave."""
        with Vertical(classes="dialog page"):
            yield Plain(self._title, classes="title")
            with VerticalScroll():
                yield Plain(self._text)
            yield Plain("arrows scroll · Esc or q leaves", classes="detail")

    def on_mount(self) -> None:
        """Let the arrow keys scroll at once."""
        self.query_one(VerticalScroll).focus()
