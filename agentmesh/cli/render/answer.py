"""Answers of queries as table, CSV or JSON."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from agentmesh.cli.render.data import emit
from agentmesh.cli.talk import say
from agentmesh.domain import jsontext
from agentmesh.domain.figures import plural
from agentmesh.domain.text import one_line, printable

if TYPE_CHECKING:
    from agentmesh.store.reader import QueryResult


_NAME_WIDTH = 100


def _json(text: str) -> Any:
    """Return a value of PostgreSQL's; one that nests too deep to be printed stays text."""
    try:
        return jsontext.parse_any_number(text)
    except ValueError:
        return text


_BOOL, _INTEGERS, _DECIMALS, _JSON = 16, (20, 21, 23, 26), (700, 701, 1700), (114, 3802)
_READ: Final[Mapping[int, Callable[[str], Any]]] = MappingProxyType(
    {
        _BOOL: lambda text: text == "t",
        **dict.fromkeys(_INTEGERS, int),
        **dict.fromkeys(_DECIMALS, jsontext.number),
        **dict.fromkeys(_JSON, _json),
    }
)
"""How JSON shows a value, by the OID of its type; other types stay text."""


def print_rows(answer: QueryResult) -> None:
    """Print a table, or one field per line if it is too wide; then the number of rows."""
    from rich.text import Text

    from agentmesh.cli.render.screen import GAP, Column, Grid, console, print_block

    columns = [one_line(name, _NAME_WIDTH) for name in answer.columns]
    numbers = [kind in (*_INTEGERS, *_DECIMALS) for kind in answer.types]
    rows = [[_cell(value) for value in row] for row in answer.rows]
    widths = [max(map(_width, column)) for column in zip(columns, *rows, strict=True)]
    out = console()
    if sum(widths) + GAP * (len(widths) - 1) > out.width:
        for number, row in enumerate(rows, 1):
            out.print(f"-[ row {number} ]-")
            for name, value in zip(columns, row, strict=True):
                out.print(Text(f"{name}: ", "bold", end="") + Text(value, end=""), soft_wrap=True)
    elif out.is_terminal and columns:
        print_block(
            Grid(
                [Column(name, right=right) for name, right in zip(columns, numbers, strict=True)],
                ([Text(value, end="") for value in row] for row in rows),
            )
        )
    elif columns:  # nothing of a terminal's: a long answer takes a fifth of the time
        padders = [str.rjust if right else str.ljust for right in numbers]
        for row in [columns, *rows]:
            cells = map(_padded, row, widths, padders)
            print((" " * GAP).join(cells).rstrip())
    say(f"({plural(len(answer.rows), 'row')})")


def _cell(value: str | None) -> str:
    """Return a value on one line; blanks stay, because they indent plans."""
    return printable(value or "").expandtabs().replace("\n", "↵")


def _padded(text: str, width: int, pad: Callable[[str, int], str]) -> str:
    return pad(text, width + len(text) - _width(text))


def _width(text: str) -> int:
    from rich.cells import cell_len

    return len(text) if text.isascii() else cell_len(text)


def print_csv(answer: QueryResult) -> None:
    """Print CSV with a header; NULL is an empty field. A terminal gets no characters that it would obey."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    shown = _printable if sys.stdout.isatty() else list
    writer.writerow(shown(answer.columns))
    writer.writerows(map(shown, answer.rows))


def _printable(fields: Sequence[str | None]) -> list[str | None]:
    return [field if field is None else printable(field) for field in fields]


def print_json(answer: QueryResult) -> None:
    """Print an array with one object per row."""
    names = _unique(answer.columns)
    readers = [_READ.get(kind, str) for kind in answer.types]
    emit(
        [
            {
                name: None if value is None else read(value)
                for name, read, value in zip(names, readers, row, strict=True)
            }
            for row in answer.rows
        ]
    )


def _unique(columns: list[str]) -> list[str]:
    """Return the names; repeated ones get a number."""
    names: list[str] = []
    for column in columns:
        name, number = column, 1
        while name in names:
            number += 1
            name = f"{column}_{number}"
        names.append(name)
    return names
