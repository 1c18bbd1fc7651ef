"""A summary that the model is sent instead of earlier rows: one line, with the text on demand."""

from __future__ import annotations

from collections.abc import Iterable

from textual.app import ComposeResult
from textual.content import Content
from textual.widget import Widget

from agentmesh.tui.conversation.entries import Summary
from agentmesh.tui.conversation.entry import EntryView
from agentmesh.tui.widgets.plain import Plain


class SummaryView(EntryView):
    """``▸ compacted from about 98,000 to 9,000 tokens: ...`` below a line."""

    can_fold = True

    def __init__(self, summary: Summary) -> None:
        self._summary = summary
        super().__init__(summary.key, classes="summary -parts")

    def compose(self) -> ComposeResult:
        """Show the line."""
        yield Plain(self._head(), classes="head")

    def body(self) -> Iterable[Widget]:
        """Return the text."""
        yield Plain(self._summary.text, classes="quoted")

    def on_unfold(self) -> None:
        """Redraw the line."""
        self.query_exactly_one(".head", Plain).update(self._head())

    def _head(self) -> Content:
        return Content.styled(f"{'▾' if self.unfolded else '▸'} {self._summary.head}", "$text-secondary")
