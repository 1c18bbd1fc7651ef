"""The list of the board: draws the lines that are in sight, however many agents there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from agentmesh.domain.ids import AgentId
from agentmesh.tui.board.board_rows import BoardRow, Columns
from agentmesh.tui.session.state import Details
from agentmesh.tui.widgets.lines import Line, Piece, drawn, line_content, plain

_KEPT = 500
"""Lines that are kept as they were drawn."""


class BoardTable(Widget, can_focus=True):
    """Has a highlighted row, which stays on its agent while rows change places, and any number of selected ones."""

    class Moved(Message):
        """Other rows are in sight, or another one is highlighted."""

    class Chosen(Message):
        """A person clicked on the highlighted row."""

    def __init__(self) -> None:
        super().__init__(id="board-table")
        self._rows: Sequence[BoardRow] = ()
        self._details: Mapping[AgentId, Details] = {}
        self._live: Mapping[AgentId, str] = {}
        self._at = self._top = 0
        self._lines: Sequence[Line] | None = None
        """Those in sight; None if they must be laid out again."""
        self._drawn: dict[tuple[int, Line, bool], Strip] = {}
        """Lines as they were drawn, by their places and whether they were highlighted: a move changes two of them."""
        self._drawn_for: object = None
        self.selected: set[AgentId] = set()
        self.empty = ""
        """Shown in place of rows if there are none."""

    @property
    def highlighted(self) -> BoardRow | None:
        """The row that keys act on, if there is any."""
        return self._rows[self._at] if self._rows else None

    @property
    def targets(self) -> list[BoardRow]:
        """The selected rows, or if there are none the highlighted one."""
        chosen = [row for row in self._rows if row.face.id in self.selected]
        return chosen or [row for row in (self.highlighted,) if row]

    @property
    def in_sight(self) -> Sequence[BoardRow]:
        """The rows that are drawn."""
        return self._rows[self._top : self._top + max(self.size.height, 1)]

    def show(self, rows: Sequence[BoardRow], *, follow: bool = True) -> None:
        """Show other rows; the highlight follows its agent, or stays at the top if ``follow`` is false."""
        kept = self.highlighted.face.id if self.highlighted and follow else None
        self._rows = rows
        self.selected &= {row.face.id for row in rows}
        places = {row.face.id: n for n, row in enumerate(rows)}
        self._go(places.get(kept, min(self._at, len(rows) - 1) if follow else 0) if kept else 0, all_changed=True)

    def show_details(self, details: Mapping[AgentId, Details], live: Mapping[AgentId, str]) -> None:
        """Show what was read of the agents in sight."""
        self._details, self._live = details, live
        self._lines = None
        self.refresh()

    def move(self, by: int) -> None:
        """Move the highlight, not beyond the ends."""
        self._go(self._at + by)

    def page(self, pages: int) -> None:
        """Move the highlight by pages."""
        self._go(self._at + pages * max(self.size.height - 1, 1))

    def select(self) -> None:
        """Select the highlighted row or no longer, and go on to the next."""
        if row := self.highlighted:
            self.selected ^= {row.face.id}
            self.move(1)

    def _go(self, at: int, *, all_changed: bool = False) -> None:
        """Move the highlight to a row, or as near to it as there are rows; draw what this changes."""
        height = max(self.size.height, 1)
        was, self._at = self._at, max(min(at, len(self._rows) - 1), 0)
        top, self._top = self._top, max(min(self._top, self._at, len(self._rows) - height), self._at - height + 1, 0)
        self._lines = None
        if all_changed or self._top != top:
            self.refresh()
        else:
            self.refresh(*(Region(0, row - top, self.size.width, 1) for row in {was, self._at}))
        self.post_message(self.Moved())

    def on_resize(self) -> None:
        """Keep the highlight in sight."""
        self._go(self._at, all_changed=True)

    def on_click(self, event: events.Click) -> None:
        """Highlight the row; if it was highlighted already, choose it."""
        row = self._top + event.y
        if row < len(self._rows):
            was = self._at
            self._go(row)
            if was == row:
                self.post_message(self.Chosen())

    def on_mouse_scroll_down(self) -> None:
        """Move on."""
        self.move(3)

    def on_mouse_scroll_up(self) -> None:
        """Move back."""
        self.move(-3)

    # Lines

    def render_line(self, y: int) -> Strip:
        """Draw a line."""
        lines, is_at = self._laid_out(), self._top + y == self._at and bool(self._rows)
        if y >= len(lines):
            return Strip.blank(self.size.width, self.visual_style.rich_style)
        selection = self.text_selection
        drawn_for = (self.size.width, self.visual_style, self.app.theme)
        if drawn_for != self._drawn_for or len(self._drawn) > _KEPT:
            self._drawn, self._drawn_for = {}, drawn_for
        if selection is None and (strip := self._drawn.get((y, lines[y], is_at))):
            return strip
        content = line_content(lines[y])
        strip = drawn(self, content.stylize("on $panel") if is_at else content, y)
        if selection is None:
            self._drawn[y, lines[y], is_at] = strip
        return strip

    def _laid_out(self) -> Sequence[Line]:
        """Return the lines in sight."""
        if self._lines is None:
            shown = self.in_sight
            columns = Columns(shown, self._details, self.size.width)
            self._lines = [
                columns.line(
                    row,
                    self._live.get(row.face.id, ""),
                    highlighted=self._top + n == self._at,
                    selected=row.face.id in self.selected,
                )
                for n, row in enumerate(shown)
            ] or [(Piece(f"  {self.empty}", "dim"),)]
        return self._lines

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """Return the selected text of the lines in sight."""
        return selection.extract("\n".join(plain(line) for line in self._laid_out())), "\n"

    def selection_updated(self, selection: Selection | None) -> None:  # noqa: ARG002 - Textual's
        """Draw it."""
        self.refresh()
