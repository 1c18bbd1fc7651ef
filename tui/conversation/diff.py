"""Shows a diff: line numbers, signs, the colours of the language; side by side where there is room.

One widget, however long the diff is, which draws and colours only the rows in sight.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from textual.content import Content
from textual.geometry import Size
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from agentmesh.tui.conversation.diff_lines import DiffLine, LinePart, Row, parse, side_by_side, stacked
from agentmesh.tui.widgets.lines import drawn

SIDE_BY_SIDE = 120
"""Least cells for the old file beside the new one."""
_AT_ONCE = 100
"""Lines that are coloured together: texts over several lines keep their colour, and a draw stays short."""
_LONG = 2000
"""Characters of a line from which on it has no colours."""
_SIGNS = {"+": "$text-success", "-": "$text-error"}
_GROUNDS = {"+": "on $success-muted 60%", "-": "on $error-muted 60%"}


class DiffView(Widget):
    """A unified diff. The signs say the same as the colours."""

    DEFAULT_CSS = "DiffView { width: 1fr; height: auto; }"

    def __init__(self, diff: str, path: str = "", *, classes: str | None = None) -> None:
        """``path`` says which language it is."""
        super().__init__(classes=classes)
        self.lines = parse(diff)
        self._path = path
        signs = {line.sign for line in self.lines}
        self._has_two_sides = {"+", "-"} <= signs
        self._digits = len(str(max((line.number or 0 for line in self.lines), default=0)))
        self._rows: list[Row] = []
        self._rows_for = -1
        self._language = ""
        self._coloured: dict[int, Content] = {}

    async def on_mount(self) -> None:
        """Colour the lines once the language is known; a thread looks, because that may load its grammar."""
        self._language = await asyncio.to_thread(_language_of, self._path) if self._path else ""
        if self._language:
            self.refresh()

    # Rows

    @property
    def _is_split(self) -> bool:
        return self._has_two_sides and self._rows_for >= SIDE_BY_SIDE

    def _lay_out(self, width: int) -> list[Row]:
        if self._rows_for != width:
            self._rows_for = width
            half = (width - 1) // 2
            if self._is_split:
                self._rows = side_by_side(self.lines, half - self._digits - 2)
            else:
                self._rows = stacked(self.lines, width - self._digits - 2)
        return self._rows

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's
        """Return the number of rows."""
        return len(self._lay_out(width))

    def render_line(self, y: int) -> Strip:
        """Draw a row."""
        width = self.size.width
        rows = self._lay_out(width)
        return drawn(self, self._row(rows[y], width) if y < len(rows) else Content(""), y)

    def _row(self, row: Row, width: int) -> Content:
        if not self._is_split:
            return self._cell(row.left, width, lambda line: line.number)
        half = (width - 1) // 2
        if row.left is not None and self.lines[row.left.line].sign in ("", "@"):
            return self._cell(row.left, width, lambda _: None)
        left = self._cell(row.left, half, lambda line: line.old)
        right = self._cell(row.right, width - half - 1, lambda line: line.new)
        return Content.assemble(left, ("│", "$panel"), right)

    def _cell(self, piece: LinePart | None, width: int, number: Callable[[DiffLine], int | None]) -> Content:
        """Return a piece of a line with its number and its sign; the rest of a wrapped line has neither."""
        if piece is None:
            return Content(" " * width)
        line = self.lines[piece.line]
        if line.sign in ("", "@"):
            text = Content(" " * (self._digits + 2) + line.text[piece.start : piece.end])
            return _fitted(text, width).stylize("$dim")
        shown = number(line) if piece.start == 0 else None
        head = Content.assemble(
            (f"{'' if shown is None else shown:>{self._digits}} ", "$dim"),
            (line.sign if piece.start == 0 else " ", f"bold {_SIGNS.get(line.sign, '')}".strip()),
        )
        text = self._text(piece.line)[piece.start : piece.end]
        return _fitted(head + text, width).stylize_before(_GROUNDS.get(line.sign, ""))

    # Colours

    def _text(self, place: int) -> Content:
        """Return a line in the colours of its language."""
        if not self._language or len(self.lines[place].text) > _LONG:
            return Content(self.lines[place].text).stylize("$foreground")
        if place not in self._coloured:
            self._colour(place - place % _AT_ONCE)
        return self._coloured[place]

    def _colour(self, first: int) -> None:
        """Colour some lines, the old file's apart from the new one's."""
        block = range(first, min(first + _AT_ONCE, len(self.lines)))
        for signs in ("- ", "+ "):
            places = [n for n in block if self.lines[n].sign in signs and self.lines[n].sign]
            places = [n for n in places if len(self.lines[n].text) <= _LONG]
            self._coloured |= zip(
                places, _highlighted([self.lines[n].text for n in places], self._language), strict=True
            )
        for n in block:
            self._coloured.setdefault(n, Content(self.lines[n].text))

    # Selection

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected rows as they are shown."""
        width = self.size.width
        shown = "\n".join(self._row(row, width).plain.rstrip() for row in self._lay_out(width))
        return selection.extract(shown), "\n"

    def selection_updated(self, selection: Selection | None) -> None:  # noqa: ARG002 - Textual's
        """Draw it."""
        self.refresh()


def _fitted(content: Content, width: int) -> Content:
    return content.truncate(width).pad_right(max(width - content.cell_length, 0))


def _language_of(path: str) -> str:
    """Return the name of the language of a file, by the end of its name; "" if it is unknown."""
    from textual.highlight import guess_language, highlight

    language = guess_language("", path)
    highlight("", language=language)  # loads its grammar here, and not in the first draw
    return "" if language == "default" else language


def _highlighted(lines: list[str], language: str) -> list[Content]:
    """Return lines of one file in the colours of its language."""
    from textual.highlight import highlight

    if not lines:
        return []
    return highlight("\n".join(lines), language=language).split("\n", allow_blank=True)[: len(lines)]
