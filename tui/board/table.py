"""A dialog with a table, for example of /sql or /cost."""

from __future__ import annotations

import re
from collections.abc import Iterable
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
    from rich.console import JustifyMethod

    from agentmesh.store.reader import QueryResult

_NUMBER = re.compile(r"[-−]?\$?\d[\d.,]*[kM]?( %| tokens)?")
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
            yield Plain(f"{plural(count, 'row')}{cut} · arrows scroll · Esc or q leaves", classes="detail")

    def on_mount(self) -> None:
        """Fill the table."""
        table: DataTable[Text] = self.query_one(DataTable)
        shown = self._answer.rows[:_ROWS]
        sides = [_side(row[place] for row in shown) for place in range(len(self._answer.columns))]
        table.add_columns(*map(_cell, self._answer.columns, sides))
        table.add_rows(map(_cell, row, sides) for row in shown)
        table.focus()


def _side(column: Iterable[str | None]) -> JustifyMethod:
    """Return the side at which a column's cells stand: right if all are numbers, amounts or empty."""
    values = [value for value in column if value]
    return "right" if values and all(map(_NUMBER.fullmatch, values)) else "left"


def _cell(value: str | None, side: JustifyMethod) -> Text:
    if value is None:
        return Text("∅", "dim", justify=side)
    return Text(one_line(value, _WIDTH), no_wrap=True, justify=side)
