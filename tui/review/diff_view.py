"""Changes as lines with a cursor. It draws only the lines in sight, however many there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from agentmesh.domain.text import one_line
from agentmesh.tui.review.lines import Anchor, LineLook, PageLine

_STYLES: Mapping[LineLook, str] = {
    LineLook.FILE: "bold $text-primary",
    LineLook.CHANGE: "$dim",
    LineLook.HUNK: "$text-secondary",
    LineLook.ADDED: "$text-success",
    LineLook.REMOVED: "$text-error",
    LineLook.KEPT: "",
    LineLook.REMARK: "italic $dim",
}
_WIDEST = 1000
"""Columns of a line that can be scrolled to."""
_SIDEWAYS = 8
"""Columns at a key."""


class ReviewView(ScrollView, can_focus=True):
    """The page's lines, and each note below its line."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "turn(-1)", show=False),
        Binding("pagedown,space", "turn(1)", show=False),
        Binding("home,g", "edge(-1)", show=False),
        Binding("end,G", "edge(1)", show=False),
        Binding("n,right_square_bracket", "file(1)", show=False),
        Binding("p,left_square_bracket", "file(-1)", show=False),
        Binding("left", "sideways(-1)", show=False),
        Binding("right", "sideways(1)", show=False),
    ]

    class NoteWanted(Message):
        """A line was clicked a second time: a note on it is wanted."""

    def __init__(self, lines: Sequence[PageLine]) -> None:
        super().__init__()
        self._lines = lines
        self._notes: Mapping[Anchor, str] = {}
        self._rows: Sequence[tuple[int, bool]] = [(index, False) for index in range(len(lines))]
        """For each row the line, and whether the row is its note."""
        self._cursor = 0
        """A line."""
        widest = max((cell_len(line.text[:_WIDEST]) for line in lines), default=0)
        numbers = [line.number for line in lines if line.number is not None]
        self._gutter = len(str(max(numbers))) + 1 if numbers else 0
        self._widest = min(widest, _WIDEST) + self._gutter + 1

    def on_mount(self) -> None:
        """Say how much there is to scroll."""
        self._lay_out()

    def show_notes(self, notes: Mapping[Anchor, str]) -> None:
        """Show these notes, each below its line."""
        self._notes = dict(notes)
        rows = []
        for index, line in enumerate(self._lines):
            rows.append((index, False))
            if line.anchor in self._notes:
                rows.append((index, True))
        self._rows = rows
        self._lay_out()
        self._show_cursor()

    @property
    def under_cursor(self) -> Anchor | None:
        """The anchor of a note on the line under the cursor."""
        return self._lines[self._cursor].anchor if self._lines else None

    # Drawing

    def render_line(self, y: int) -> Strip:
        """Draw a row."""
        x, top = self.scroll_offset
        width, base = self.scrollable_content_region.width, self.visual_style
        row = top + y
        if row >= len(self._rows):
            return Strip.blank(width, base.rich_style)
        index, is_note = self._rows[row]
        content = self._note(index) if is_note else self._line(self._lines[index])
        if index == self._cursor and not is_note:
            content = content.pad_right(max(self._widest, x + width) - content.cell_length).stylize_before("on $panel")
        segments = [
            Segment(text, (base + style).rich_style)
            for text, style in content.render(base, end="", parse_style=self._get_style)
        ]
        return Strip(segments, content.cell_length).crop_extend(x, x + width, base.rich_style)

    def _line(self, line: PageLine) -> Content:
        number = "" if line.number is None else str(line.number)
        gutter = (
            Content.styled(f"{number:>{self._gutter - 1}} ", "$dim") if self._gutter and line.anchor else Content("")
        )
        if line.look in (LineLook.FILE, LineLook.CHANGE):
            gutter = Content("")
        return gutter + Content.styled(line.text[:_WIDEST], _STYLES[line.look])

    def _note(self, index: int) -> Content:
        anchor = self._lines[index].anchor
        text = self._notes.get(anchor, "") if anchor else ""
        return Content.styled(f"{' ' * self._gutter}✎ {one_line(text, _WIDEST)}", "bold $text-warning")

    def _lay_out(self) -> None:
        self.virtual_size = Size(self._widest, len(self._rows))
        self.refresh()

    # Moving

    def action_move(self, by: int) -> None:
        """Move the cursor by lines."""
        self._go(self._cursor + by)

    def action_turn(self, by: int) -> None:
        """Move by a screen."""
        self._go(self._cursor + by * max(self.scrollable_content_region.height - 1, 1))

    def action_edge(self, by: int) -> None:
        """Move to the first or the last line."""
        self._go(0 if by < 0 else len(self._lines))

    def action_file(self, by: int) -> None:
        """Move to the next file, or to the beginning of this one and then to the one before."""
        files = [index for index, line in enumerate(self._lines) if line.look is LineLook.FILE]
        further = [one for one in files if (one - self._cursor) * by > 0]
        if further:
            self._go(further[0] if by > 0 else further[-1], at_top=True)

    def action_sideways(self, by: int) -> None:
        """Scroll a long line."""
        self.scroll_to(x=self.scroll_offset.x + by * _SIDEWAYS, animate=False)

    def on_click(self, event: events.Click) -> None:
        """Move to the clicked line; a second click wants a note."""
        row = self.scroll_offset.y + event.y
        if row < len(self._rows):
            was, (index, _) = self._cursor, self._rows[row]
            self._go(index)
            if was == index and event.chain == 2:
                self.post_message(self.NoteWanted())

    def _go(self, line: int, *, at_top: bool = False) -> None:
        self._cursor = max(min(line, len(self._lines) - 1), 0)
        if at_top:
            self.scroll_to(y=self._row(self._cursor), animate=False)
        self._show_cursor()
        self.refresh()

    def _show_cursor(self) -> None:
        region = Region(self.scroll_offset.x, self._row(self._cursor), 1, 1)
        self.scroll_to_region(region, animate=False, force=True)

    def _row(self, line: int) -> int:
        if len(self._rows) == len(self._lines):
            return line
        return next(row for row, (index, _) in enumerate(self._rows) if index == line)
