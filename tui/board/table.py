"""A dialog with a table, for example of /sql or /cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import DataTable

from agentmesh.domain.figures import plural
from agentmesh.domain.text import one_line
from agentmesh.tui.widgets.plain import Plain
from agentmesh.tui.widgets.reading import ReadingPage

if TYPE_CHECKING:
    from agentmesh.store.reader import QueryResult

_WIDTH, _ROWS = 120, 5000
"""Most characters of a cell, and most rows that are shown."""


class TablePage(ReadingPage):
    """Rows and columns; foreign text, so never markup."""

    def __init__(self, query: str, answer: QueryResult) -> None:
        super().__init__()
        self._query, self._answer = query, answer

    def compose(self) -> ComposeResult:
        """Show the query, the table and how much it is."""
        count = len(self._answer.rows)
        cut = f", the first {_ROWS:,} are shown" if count > _ROWS else ""
        with Vertical(classes="dialog -wide"):
            yield Plain(one_line(self._query, 300), classes="title")
            yield DataTable[Text](zebra_stripes=True, cursor_type="row")
            yield Plain(f"{plural(count, 'row')}{cut} · arrows scroll · Esc leaves", classes="detail")

    def on_mount(self) -> None:
        """Fill the table."""
        table: DataTable[Text] = self.query_one(DataTable)
        table.add_columns(*(Text(one_line(name, _WIDTH), no_wrap=True) for name in self._answer.columns))
        table.add_rows([_cell(value) for value in row] for row in self._answer.rows[:_ROWS])
        table.focus()


def _cell(value: str | None) -> Text:
    return Text("∅", "dim") if value is None else Text(one_line(value, _WIDTH), no_wrap=True)
