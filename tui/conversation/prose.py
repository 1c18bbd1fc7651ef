"""Shows Markdown of a model. HTML is shown as text, and a link can only open a web page."""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator

from textual.content import Content
from textual.geometry import Size
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from agentmesh.tui.conversation.document import Document
from agentmesh.tui.conversation.markdown import Line
from agentmesh.tui.widgets.lines import drawn as drawn_line

_AT_ONCE = 2000
"""Characters that are parsed at once; a thread parses longer texts, and code, whose first use loads a lexer."""
_BLANK = Line(Content(""), Content(""))


class Prose(Widget):
    """A text in Markdown. One widget, however long it is, which draws only the lines in sight."""

    DEFAULT_CSS = "Prose { width: 1fr; height: auto; }"

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self._text = text
        self._document = Document()
        self._ends: list[int] = []
        """The line after each block, for a document and a width."""
        self._ends_of: tuple[Document, int] = self._document, 0
        self._drawn: dict[int, tuple[Line, Strip]] = {}
        """Drawn lines: Textual redraws a growing text as a whole, though few of its lines change."""
        self._drawn_for: object = None
        self._is_parsed = len(text) <= _AT_ONCE and "```" not in text
        if self._is_parsed:
            self._document = self._document.grown(text).finished()

    async def on_mount(self) -> None:
        """Parse what was not parsed at once."""
        if not self._is_parsed:
            await self._change(lambda document: document.grown(self._text).finished())

    async def append(self, text: str) -> None:
        """Show more text."""
        await self._change(lambda document: document.grown(text))

    async def finish(self) -> None:
        """Parse the last block too: it will not grow any more."""
        await self._change(Document.finished)

    def action_open(self, href: str) -> None:
        """Open pages of the web; any other link of a foreign text is only shown."""
        if href.startswith(("https://", "http://")):
            self.app.open_url(href)
        else:
            self.notify(f"Not opened: {href}", severity="warning", markup=False)

    async def _change(self, change: Callable[[Document], Document]) -> None:
        self._document = await asyncio.to_thread(_laid_out, change, self._document, self.content_size.width)
        self.refresh(layout=True)

    # Lines

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's
        """Return the number of lines."""
        ends = self._lay_out(width)
        return ends[-1] if ends else 0

    def render_line(self, y: int) -> Strip:
        """Draw a line."""
        width = self.size.width
        self._lay_out(width)
        line, base, selection = self._line(y, width), self.visual_style, self.text_selection
        drawn_for = (width, base, self.app.theme) if selection is None else None
        if drawn_for is None or drawn_for != self._drawn_for:
            self._drawn, self._drawn_for = {}, drawn_for
        if (drawn := self._drawn.get(y)) is not None and drawn[0] is line:
            return drawn[1]
        strip = drawn_line(self, line.before + (_filled(line, width) if line.fill else line.content), y)
        if selection is None:
            self._drawn[y] = line, strip
        return strip

    def _lay_out(self, width: int) -> list[int]:
        document = self._document
        if self._ends_of != (document, width):
            self._ends, end, before = [], 0, None
            for block in document.blocks:
                end += bool(before and block.is_apart(before)) + len(block.lines(width))
                self._ends.append(end)
                before = block
            self._ends_of = document, width
        return self._ends

    def _line(self, y: int, width: int) -> Line:
        place = bisect_right(self._ends, y)
        if place == len(self._ends):
            return _BLANK
        lines = self._document.blocks[place].lines(width)
        offset = y - (self._ends[place] - len(lines))
        return lines[offset] if offset >= 0 else _BLANK

    # Selection

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected text; a wrapped line is one line again."""
        return "".join(self._selected(selection)), "\n"

    def selection_updated(self, selection: Selection | None) -> None:  # noqa: ARG002 - Textual's
        """Draw it."""
        self.refresh()

    def _selected(self, selection: Selection) -> Iterator[str]:
        width = self.size.width
        ends = self._lay_out(width)
        first = selection.start.y if selection.start else 0
        height = ends[-1] if ends else 0
        last = min(selection.end.y + 1, height) if selection.end else height
        for y in range(first, last):
            line = self._line(y, width)
            skipped = len(line.before.plain) if line.between == " " and y > first else 0
            start, end = selection.get_span(y) or (0, 0)
            if y > first:
                yield line.between
            yield (line.before + line.content).plain[max(start, skipped) : None if end < 0 else end]


def _laid_out(change: Callable[[Document], Document], document: Document, width: int) -> Document:
    """Change a document and wrap its lines for a width; slow enough to run on a thread."""
    changed = change(document)
    if width:
        for block in changed.blocks:
            block.lines(width)
    return changed


def _filled(line: Line, width: int) -> Content:
    room = width - line.before.cell_length - line.content.cell_length - 1
    return line.content.pad(1, max(room, 0)).stylize_before(line.fill)


def is_plain(text: str) -> bool:
    """Whether Markdown would show a text as it is."""
    return _PLAIN.fullmatch(text) is not None


_PLAIN = re.compile(r"[^\W\d_](?:[^\W_]|[ ,;:'\"()?!…–%$/.])*")
"""One line of words, without anything that begins a list, a link or a heading."""
