"""The only access to rich: consoles that treat no text as markup, and tables without borders that fit a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from agentmesh.domain.text import NAME_END, one_line

_UNLIMITED = 100_000
"""Characters; lines for a pipe are never wrapped or cut."""
GAP = 2
"""Blanks between two columns."""


class _Console(Console):
    """A console that reports to the program's top frame that the reader has left; rich itself would exit with 1."""

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError."""
        raise BrokenPipeError


def console(stream: TextIO | None = None) -> Console:
    """Return a console on stdout or another stream: no markup, emoji codes or highlighting, no colour in a pipe."""
    stream = stream or sys.stdout
    terminal = stream.isatty()
    return _Console(
        file=stream,
        markup=False,
        emoji=False,
        highlight=False,
        force_terminal=terminal,
        width=None if terminal else _UNLIMITED,
    )


def cell(text: str, style: str = "", width: int = _UNLIMITED) -> Text:
    """Return foreign text for one cell, on one line of at most ``width`` characters."""
    return Text(one_line(text, width), style=style, no_wrap=True, overflow="ellipsis", end="")


@dataclass(frozen=True, slots=True)
class Column:
    """How a column behaves if the terminal is too narrow for the table."""

    header: str = ""
    right: bool = False
    """Whether it holds numbers."""
    least: int | None = None
    """Characters that its cells keep when they are cut; None: never cut them."""
    keeps_end: bool = False
    """Whether a cut leaves out a part before the end: names of siblings often differ only there."""
    spare: int = 0
    """Columns with the highest number are left out first; those with 0 stay."""


class Grid:
    """A table without borders that fits its terminal: it drops columns and cuts long cells, but keeps ids whole."""

    def __init__(self, columns: Sequence[Column], rows: Iterable[Sequence[str | Text]]) -> None:
        self._columns = columns
        self._rows = [[value if isinstance(value, Text) else cell(value) for value in row] for row in rows]
        self._widths = [
            max([len(column.header), *(row[i].cell_len for row in self._rows)]) for i, column in enumerate(columns)
        ]

    @property
    def width(self) -> int:
        """The width that shows everything whole."""
        return sum(self._widths) + GAP * (len(self._widths) - 1)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table for this width."""
        yield from self.lines(options.max_width)

    def lines(self, room: int) -> Iterator[Text]:
        """Yield the table line by line; rich would lay out its whole table before the first line appears."""
        shown = self._fitting(room)
        widths = self._cut(shown, room)
        if any(column.header for column in self._columns):
            yield self._line([Text(column.header, "bold") for column in self._columns], shown, widths)
        for row in self._rows:
            yield self._line(row, shown, widths)

    def _line(self, row: Sequence[Text], shown: Sequence[int], widths: Mapping[int, int]) -> Text:
        line = Text(no_wrap=True, overflow="crop")
        for i in shown:
            value, left = row[i], widths[i] - row[i].cell_len
            if left < 0:
                end = min(NAME_END, widths[i] // 2) if self._columns[i].keeps_end else 0
                value, tail, left = value.copy(), value[value.cell_len - end :], 0
                value.truncate(widths[i] - end, overflow="ellipsis")
                value.append_text(tail)
            if i != shown[0]:
                line.append(" " * GAP)
            line.append(" " * left if self._columns[i].right else "")
            line.append_text(value)
            line.append("" if self._columns[i].right or i == shown[-1] else " " * left)
        return line

    def _fitting(self, room: int) -> list[int]:
        """Return the columns to show, leaving out as few as possible."""
        shown = list(range(len(self._columns)))
        for i in sorted(shown, key=lambda i: -self._columns[i].spare):
            if not self._columns[i].spare or sum(map(self._least, shown)) + GAP * (len(shown) - 1) <= room:
                break
            shown.remove(i)
        return shown

    def _cut(self, shown: Sequence[int], room: int) -> dict[int, int]:
        """Return the width of each column; cut the longest first."""
        widths = {i: self._widths[i] for i in shown}
        excess = sum(widths.values()) + GAP * (len(shown) - 1) - room
        for i in sorted(shown, key=lambda i: self._least(i) - widths[i]):
            cut = max(0, min(excess, widths[i] - self._least(i)))
            widths[i] -= cut
            excess -= cut
        return widths

    def _least(self, i: int) -> int:
        least = self._columns[i].least
        return self._widths[i] if least is None else min(least, self._widths[i])


def print_block(block: Grid) -> None:
    """Print a table on stdout, each line as soon as it is laid out."""
    out = console()
    for line in block.lines(out.width):
        if out.is_terminal:
            out.print(line)
        else:
            print(line.plain.rstrip())
