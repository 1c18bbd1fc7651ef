"""Lays out a table as lines. On a narrow screen columns shrink and their cells wrap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from textual.content import Content

_BETWEEN = 3
"""Cells between two columns."""
_EMPTY = Content("")


def columns(rows: Sequence[Sequence[Content]], room: int) -> Iterator[Content]:
    """Return the lines of a table that has ``room`` cells; the first row is its head."""
    widths = _fitted(
        [max(cell.cell_length for cell in column) for column in zip_longest(*rows, fillvalue=_EMPTY)], room
    )
    for number, row in enumerate(rows):
        yield from _row([cell.stylize_before("bold") for cell in row] if number == 0 else row, widths)
        if number == 0:
            yield Content.styled("─┼─".join("─" * width for width in widths), "$dim")


def _fitted(widths: Sequence[int], room: int) -> list[int]:
    """Return widths that fit: columns narrower than an equal share keep their width, the others share the rest."""
    left = max(room - _BETWEEN * (len(widths) - 1), len(widths))
    fitted = [1] * len(widths)
    by_need = sorted(range(len(widths)), key=widths.__getitem__)
    for place, column in enumerate(by_need):
        fitted[column] = max(min(widths[column], left // (len(widths) - place)), 1)
        left -= fitted[column]
    return fitted


def _row(cells: Sequence[Content], widths: Sequence[int]) -> Iterator[Content]:
    padded = [*cells[: len(widths)], *[_EMPTY] * (len(widths) - len(cells))]
    wrapped = [
        [cell] if cell.cell_length <= width else cell.wrap(width) for cell, width in zip(padded, widths, strict=True)
    ]
    bar = Content.styled(" │ ", "$dim")
    for line in zip_longest(*wrapped, fillvalue=_EMPTY):
        yield bar.join(
            piece.pad_right(max(width - piece.cell_length, 0)) for piece, width in zip(line, widths, strict=True)
        )
