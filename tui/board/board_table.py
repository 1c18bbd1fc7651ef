"""The list of the board: draws the lines that are in sight, however many agents there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from textual import events
from textual.app import RenderResult
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from agentmesh.domain.ids import AgentId
from agentmesh.tui.board.board_rows import BoardRow, Columns
from agentmesh.tui.session.state import Details
from agentmesh.tui.widgets.lines import line_content


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
        self.selected: set[AgentId] = set()
        self.empty = ""
        """What stands there without a row."""

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
        self._go(places.get(kept, min(self._at, len(rows) - 1) if follow else 0) if kept else 0)

    def show_details(self, details: Mapping[AgentId, Details], live: Mapping[AgentId, str]) -> None:
        """Show what was read of the agents in sight."""
        self._details, self._live = details, live
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

    def _go(self, at: int) -> None:
        height = max(self.size.height, 1)
        self._at = max(min(at, len(self._rows) - 1), 0)
        self._top = max(min(self._top, self._at, len(self._rows) - height), self._at - height + 1, 0)
        self.refresh()
        self.post_message(self.Moved())

    def on_resize(self) -> None:
        """Keep the highlight in sight."""
        self._go(self._at)

    def on_click(self, event: events.Click) -> None:
        """Highlight the row; if it was highlighted already, choose it."""
        row = self._top + event.y
        if row < len(self._rows):
            was, self._at = self._at, row
            self._go(row)
            if was == row:
                self.post_message(self.Chosen())

    def on_mouse_scroll_down(self) -> None:
        """Move on."""
        self.move(3)

    def on_mouse_scroll_up(self) -> None:
        """Move back."""
        self.move(-3)

    def render(self) -> RenderResult:
        """Return the lines in sight."""
        if not self._rows:
            return Content.styled(f"  {self.empty}", "$dim")
        shown = self.in_sight
        columns = Columns(shown, self._details, self.size.width)
        line: Callable[[int, BoardRow], Content] = lambda n, row: line_content(  # noqa: E731
            columns.line(
                row,
                self._live.get(row.face.id, ""),
                highlighted=self._top + n == self._at,
                selected=row.face.id in self.selected,
            )
        )
        return Content("\n").join(
            content.stylize("on $panel") if self._top + n == self._at else content
            for n, content in enumerate(line(n, row) for n, row in enumerate(shown))
        )
