"""Lines of styled pieces, made again for every width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.segment import Segment
from textual.app import RenderResult
from textual.content import Content
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from agentmesh.tui.theme import ROLES


class Piece(NamedTuple):
    """A piece of a line: printable text without line breaks, and its role; the theme knows the colour."""

    text: str
    role: str = ""
    """``received``, ``running``, ``idle``, ``dead`` (marks and their words), ``me``, ``dim``, ``name``, ``warning``."""


Line = tuple[Piece, ...]


def plain(line: Line) -> str:
    """Return the line as text."""
    return "".join(piece.text for piece in line)


class Lines(Widget):
    """Shows any number of lines; hidden without one."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's
        super().__init__(id=id)
        self._make: Callable[[int], Sequence[Line]] = lambda _width: ()
        self._count = 0

    def show(self, make: Callable[[int], Sequence[Line]]) -> None:
        """Show what ``make`` returns for a width."""
        self._make = make
        count = len(make(self.size.width or self.app.size.width))
        changed, self._count = count != self._count, count
        self.display = count > 0
        self.refresh(layout=changed)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's
        """Return the number of lines, which may depend on the size of the screen."""
        self._count = len(self._make(width))
        return self._count

    def render(self) -> RenderResult:
        """Return the lines."""
        return Content("\n").join(line_content(line) for line in self._make(self.size.width))


def line_content(line: Line) -> Content:
    """Return a line in the colours of its pieces' roles."""
    return Content.assemble(*((piece.text, ROLES.get(piece.role, "")) for piece in line))


def drawn(widget: Widget, content: Content, y: int) -> Strip:
    """Draw a widget's line ``y``, with its selected part, as ``Widget.render_line`` returns it."""
    base, width = widget.visual_style, widget.size.width
    selection = widget.text_selection
    if selection is not None and (span := selection.get_span(y)) is not None:
        start, end = span
        # Below the selection lies the widget's own style, so that both colours are seen.
        style = widget.screen.get_visual_style("screen--selection")
        content = content.stylize(style, start, None if end < 0 else end)
    x, segments = 0, []
    for text, style in content.render(base, end="", parse_style=widget._get_style):  # noqa: SLF001  as Textual renders
        segments.append(Segment(text, (base + style).rich_style_with_offset(x, y)))
        x += len(text)
    return Strip(segments, content.cell_length).adjust_cell_length(width, base.rich_style)
