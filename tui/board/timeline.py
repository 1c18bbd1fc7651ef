"""A dialog with the session's time line, drawn as wide as the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.app import ComposeResult, RenderResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from agentmesh.export.cells import draw, summary
from agentmesh.tui.widgets.plain import Plain
from agentmesh.tui.widgets.reading import ReadingPage

if TYPE_CHECKING:
    from agentmesh.export.cells import Line
    from agentmesh.export.lanes import Timeline

_STYLES: Final = {
    "dim": "$dim",
    "title": "bold",
    "model": "$text-primary",
    "tool": "$text-success",
    "wait": "$text-warning",
    "ask": "bold $text-accent",
    "mail": "bold $text-secondary",
    "failed": "$text-error",
    "dead": "bold $text-error",
}


class TimelinePage(ReadingPage):
    """A drawing that can be scrolled; names are foreign text, so never markup."""

    def __init__(self, timeline: Timeline) -> None:
        super().__init__()
        self._timeline = timeline

    def compose(self) -> ComposeResult:
        """Show from when to when it goes, the drawing, and how to leave."""
        with Vertical(classes="dialog -wide page"):
            yield Plain(summary(self._timeline), classes="title")
            with VerticalScroll():
                yield Lanes(self._timeline)
            yield Plain("arrows scroll · Esc or q leaves · /export html draws it finer", classes="detail")

    def on_mount(self) -> None:
        """Let the arrow keys scroll at once."""
        self.query_one(VerticalScroll).focus()


class Lanes(Widget):
    """The lanes, drawn for the width that there is."""

    def __init__(self, timeline: Timeline) -> None:
        super().__init__()
        self._timeline = timeline
        self._width = 0
        self._lines: list[Line] = []

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's
        """Return the number of lines."""
        return len(self._drawn(width))

    def render(self) -> RenderResult:
        """Return the lines."""
        lines = self._drawn(self.size.width)
        return Content("\n").join(
            Content.assemble(*((text, _STYLES.get(style, "")) for text, style in line)) for line in lines
        )

    def _drawn(self, width: int) -> list[Line]:
        if width != self._width:
            self._width, self._lines = width, draw(self._timeline, width)
        return self._lines
