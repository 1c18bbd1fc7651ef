"""A unified diff as numbered lines, and these as rows of a width: one below the other, or side by side."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_TAB = 4
_JOINERS = "\u200d\ufe0f"
"""They may make what stands before them wider."""
_SEPARATORS = str.maketrans({"\u2028": "\\u2028", "\u2029": "\\u2029"})
"""Characters that other programs take for the end of a line are written out."""


class DiffLine(NamedTuple):
    """One line of a diff."""

    sign: str
    """``+``, ``-``, a blank for a line that stays, ``@`` between two hunks, empty for a remark."""
    text: str
    """Without its sign and without tabs."""
    old: int | None = None
    new: int | None = None

    @property
    def number(self) -> int | None:
        """The number in the file that it stands in, for a line that stays in the new one."""
        return self.old if self.sign == "-" else self.new


class LinePart(NamedTuple):
    """The part of a line that one row shows."""

    line: int
    start: int
    end: int


class Row(NamedTuple):
    """A row: one piece, or in a diff side by side the old one and the new one."""

    left: LinePart | None
    right: LinePart | None = None


def parse(diff: str) -> list[DiffLine]:
    """Return the lines of a unified diff without its file names; a clipped one loses its numbers after the cut."""
    lines: list[DiffLine] = []
    old = new = left_old = left_new = 0
    is_numbered = in_hunk = False
    for line in diff.removesuffix("\n").split("\n"):
        if head := _HUNK.match(line):
            old, new = int(head[1]), int(head[3])
            left_old, left_new = (1 if head[n] is None else int(head[n]) for n in (2, 4))
            is_numbered = in_hunk = True
            if lines:
                lines.append(DiffLine("@", "⋯"))
            continue
        in_hunk = in_hunk and (left_old > 0 or left_new > 0 or not is_numbered)
        sign = line[:1] or " "
        if not in_hunk and line.startswith(("--- ", "+++ ")):
            continue
        if not in_hunk or sign not in "+- ":
            is_numbered = is_numbered and sign == "\\"
            lines.append(DiffLine("", without_tabs(line.removeprefix("\\").strip())))
            continue
        numbers = (old if sign != "+" else None, new if sign != "-" else None) if is_numbered else (None, None)
        lines.append(DiffLine(sign, without_tabs(line[1:]), *numbers))
        by_old, by_new = int(sign != "+"), int(sign != "-")
        old, new, left_old, left_new = old + by_old, new + by_new, left_old - by_old, left_new - by_new
    return lines


def without_tabs(text: str) -> str:
    """Return a line with blanks up to the next stop for each tab, counting wide characters twice."""
    text = text.translate(_SEPARATORS)
    if "\t" not in text:
        return text
    made = ""
    for piece in text.split("\t")[:-1]:
        made += piece
        made += " " * (_TAB - cell_len(made) % _TAB)
    return made + text.rpartition("\t")[2]


def stacked(lines: Sequence[DiffLine], width: int) -> list[Row]:
    """Return the rows of a diff whose lines stand below each other; ``width``: cells for the text of a line."""
    return [Row(piece) for place in range(len(lines)) for piece in _pieces(lines, place, width)]


def side_by_side(lines: Sequence[DiffLine], width: int) -> list[Row]:
    """Return the rows of a diff with the old file at the left and the new one at the right."""
    rows: list[Row] = []
    for olds, news in _pairs(lines):
        left = [piece for place in olds for piece in _pieces(lines, place, width)] if olds != news else []
        if olds == news:
            rows += [
                Row(piece, None if lines[piece.line].sign in ("", "@") else piece)
                for piece in _pieces(lines, olds[0], width)
            ]
            continue
        right = [piece for place in news for piece in _pieces(lines, place, width)]
        longer = max(len(left), len(right))
        rows += (Row(*pair) for pair in zip(_filled(left, longer), _filled(right, longer), strict=True))
    return rows


def _pairs(lines: Sequence[DiffLine]) -> Iterator[tuple[list[int], list[int]]]:
    """Yield which lines stand beside each other: each removed one with an added one, any other with itself."""
    olds: list[int] = []
    news: list[int] = []
    for place, line in enumerate(lines):
        if line.sign == "-" and not news:
            olds.append(place)
        elif line.sign == "+":
            news.append(place)
        else:
            yield from _matched(olds, news)
            olds, news = ([place], []) if line.sign == "-" else ([], [])
            if line.sign != "-":
                yield [place], [place]
    yield from _matched(olds, news)


def _matched(olds: list[int], news: list[int]) -> Iterator[tuple[list[int], list[int]]]:
    for place in range(max(len(olds), len(news))):
        yield olds[place : place + 1], news[place : place + 1]


def _filled(pieces: list[LinePart], count: int) -> Iterable[LinePart | None]:
    return [*pieces, *[None] * (count - len(pieces))]


def _pieces(lines: Sequence[DiffLine], place: int, width: int) -> list[LinePart]:
    """Return a line in pieces that fit; nothing of it is ever left out."""
    text, width = lines[place].text, max(width, 2)
    if len(text) <= width // 2 or (text.isascii() and len(text) <= width):
        return [LinePart(place, 0, len(text))]
    if text.isascii():
        return [LinePart(place, start, min(start + width, len(text))) for start in range(0, len(text), width)]
    return [LinePart(place, start, end) for start, end in _wrapped(text, width)]


def _wrapped(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Yield where the rows of a text begin and end; each character counts alone, so none is ever lost or too wide."""
    start = used = 0
    for at, character in enumerate(text):
        cells = 1 if character in _JOINERS else cell_len(character)
        if used + cells > width and at > start:
            yield start, at
            start, used = at, 0
        used += cells
    yield start, len(text)
