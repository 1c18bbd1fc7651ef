"""Lays out a table as lines. On a narrow screen columns shrink and their cells wrap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import zip_longest

from textual.content import Content

_BETWEEN = 3
"""Cells between two columns."""
_WIDEST = 2
"""Cells of one character; a narrower column would lose it."""
_EMPTY = Content("")


class Align(Enum):
    """Where the text of a column stands."""

    LEFT = "left"
    CENTER = "center"
    RIGHT = "right"


def columns(rows: Sequence[Sequence[Content]], room: int, aligned: Sequence[Align] = ()) -> Iterator[Content]:
    """Return the lines of a table that has ``room`` cells; the first row is its head.

    ``aligned`` is for the columns in their order; those that it leaves out stand left.
    """
    widths = _fitted(
        [max(cell.cell_length for cell in column) for column in zip_longest(*rows, fillvalue=_EMPTY)], room
    )
    aligned = [*aligned[: len(widths)], *[Align.LEFT] * (len(widths) - len(aligned))]
    for number, row in enumerate(rows):
        yield from _row([cell.stylize_before("bold") for cell in row] if number == 0 else row, widths, aligned)
        if number == 0:
            yield Content.styled("─┼─".join("─" * width for width in widths), "$dim")


def _fitted(widths: Sequence[int], room: int) -> list[int]:
    """Return widths that fit: columns narrower than an equal share keep their width, the others share the rest."""
    left = max(room - _BETWEEN * (len(widths) - 1), len(widths))
    fitted = [1] * len(widths)
    by_need = sorted(range(len(widths)), key=widths.__getitem__)
    for place, column in enumerate(by_need):
        least = max(min(widths[column], _WIDEST), 1)
        fitted[column] = max(min(widths[column], left // (len(widths) - place)), least)
        left -= fitted[column]
    return fitted


def _row(cells: Sequence[Content], widths: Sequence[int], aligned: Sequence[Align]) -> Iterator[Content]:
    padded = [*cells[: len(widths)], *[_EMPTY] * (len(widths) - len(cells))]
    wrapped = [
        [cell] if cell.cell_length <= width else [line.rstrip() for line in cell.wrap(width)]
        for cell, width in zip(padded, widths, strict=True)
    ]
    bar = Content.styled(" │ ", "$dim")
    for line in zip_longest(*wrapped, fillvalue=_EMPTY):
        pieces = zip(line, widths, aligned, strict=True)
        yield bar.join(_padded(piece, width, align) for piece, width, align in pieces)


def _padded(piece: Content, width: int, aligned: Align) -> Content:
    """Return a piece as wide as its column; wide characters count as two cells."""
    free = max(width - piece.cell_length, 0)
    before = {Align.LEFT: 0, Align.CENTER: free // 2, Align.RIGHT: free}[aligned]
    return piece.pad_left(before).pad_right(free - before)
