"""A timeline in characters: one line per agent, for a terminal of any width and character set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from itertools import groupby
from types import MappingProxyType
from typing import Final

from agentmesh.domain.ids import AgentId
from agentmesh.domain.text import NAME_END
from agentmesh.export.figures import GLYPHS, lasting, moment, offset
from agentmesh.export.lanes import USER, Lane, Timeline

Piece = tuple[str, str]
"""Text and its style: a key of STYLES, or "" for plain."""
Line = list[Piece]

STYLES: Final = MappingProxyType(
    {
        "dim": "dim",
        "title": "bold",
        "model": "cyan",
        "tool": "green",
        "wait": "dim yellow",
        "ask": "bold magenta",
        "mail": "bold blue",
        "failed": "red",
        "dead": "bold red",
    }
)
"""The colour of each style on a terminal."""

NARROWEST: Final = 40
_LEAST_NAME, _STATE = 8, 9
_TICK_ROOM: Final = 11
"""Columns from one time to the next, at least."""


@dataclass(frozen=True, slots=True)
class Glyphs:
    """The characters of a drawing."""

    model: str
    tool: str
    wait: str
    ask: str
    failed: str
    idle: str
    gap: str
    tick: str
    down: str
    up: str
    arrived: str
    dead: str


UNICODE: Final = Glyphs("▒", "█", "·", "?", "!", "─", "⋮", "╷", "▼", "▲", "◆", "✗")
ASCII: Final = Glyphs("=", "#", ".", "?", "!", "-", ":", "|", "v", "^", "*", "x")

_RANK: Final = MappingProxyType(
    {"": 0, "dim": 1, "wait": 2, "model": 3, "tool": 4, "ask": 5, "failed": 6, "arrived": 7, "mail": 8, "dead": 9}
)
"""If two things share a column, the one with the higher rank is drawn."""


def draw(timeline: Timeline, width: int, glyphs: Glyphs = UNICODE, zone: tzinfo | None = None) -> list[Line]:
    """Return the drawing, each line at most ``width`` columns wide (at least 40)."""
    width = max(width, NARROWEST)
    labels = [_label(lane.guide, lane.name, glyphs) for lane in timeline.lanes]
    names = min(max(_LEAST_NAME, *(len(label) for label in labels)), width // 3)
    columns = width - names - _STATE - 3
    rows = {lane.id: i for i, lane in enumerate(timeline.lanes)}
    lines = [_times(timeline, names, columns, glyphs, zone)]
    if timeline.has_user:
        lines.append([(_fitted("user", names), "title"), (" ", ""), *_user(timeline, columns, glyphs)])
    for lane, label in zip(timeline.lanes, labels, strict=True):
        state = lane.status if glyphs is ASCII else f"{GLYPHS[lane.status]} {lane.status}"
        style = "dead" if lane.died else ""
        cells = _cells(timeline, lane, rows, columns, glyphs)
        lines.append([(_fitted(label, names), "title"), (" ", ""), *_pieces(cells), ("  ", ""), (state, style)])
    return [*lines, [], *_legend(width, glyphs)]


def summary(timeline: Timeline, zone: tzinfo | None = None) -> str:
    """Return the period of the timeline in one line."""
    took = lasting(timeline.ended - timeline.began)
    clock = offset(timeline.ended, zone)
    left_out = f", {timeline.letters_left_out:,} older messages not drawn" if timeline.letters_left_out else ""
    return f"{moment(timeline.began, zone)} to {moment(timeline.ended, zone)} ({clock}), {took}{left_out}"


def plain(line: Line) -> str:
    """Return a line without its styles and trailing blanks."""
    return "".join(text for text, _ in line).rstrip()


_Cells = list[tuple[str, str]]


def _cells(timeline: Timeline, lane: Lane, rows: Mapping[AgentId, int], columns: int, glyphs: Glyphs) -> _Cells:
    """Return sign and style of each column of an agent's line."""
    cells = _empty(timeline, columns, glyphs)
    _fill(timeline, cells, lane.began, lane.ended, (glyphs.idle, "dim"))
    for i in _gap_columns(timeline, columns):
        if cells[i][0] == glyphs.idle:
            cells[i] = (glyphs.gap, "dim")
    for span in lane.spans:
        style = "failed" if span.failed else span.kind
        _fill(timeline, cells, span.began, span.ended, (getattr(glyphs, style), style))
    for letter in timeline.letters:
        if letter.recipient == lane.id:
            _put(timeline, cells, letter.sent_at, (glyphs.arrived, "arrived"))
        if letter.sender == lane.id:
            below = rows.get(letter.recipient, -1) > rows[lane.id]
            _put(timeline, cells, letter.sent_at, (glyphs.down if below else glyphs.up, "mail"))
    if lane.died:
        _put(timeline, cells, lane.ended, (glyphs.dead, "dead"))
    return cells


def _user(timeline: Timeline, columns: int, glyphs: Glyphs) -> Iterator[Piece]:
    cells = _empty(timeline, columns, glyphs)
    for letter in timeline.letters:
        if letter.sender is USER:
            _put(timeline, cells, letter.sent_at, (glyphs.down, "mail"))
    return _pieces(cells)


def _empty(timeline: Timeline, columns: int, glyphs: Glyphs) -> _Cells:
    cells = [(" ", "")] * columns
    for i in _gap_columns(timeline, columns):
        cells[i] = (glyphs.gap, "dim")
    return cells


def _gap_columns(timeline: Timeline, columns: int) -> Iterator[int]:
    for began, ended, _ in timeline.axis.gaps():
        yield min(int((began + ended) / 2 * columns), columns - 1)


def _column(timeline: Timeline, columns: int, at: datetime) -> int:
    return min(int(timeline.axis.place(at) * columns), columns - 1)


def _fill(timeline: Timeline, cells: _Cells, began: datetime, ended: datetime, cell: tuple[str, str]) -> None:
    first = _column(timeline, len(cells), began)
    # A span covers the column in which it ends only if it began there.
    last = max(_column(timeline, len(cells), max(ended - timedelta(microseconds=1), began)), first)
    for i in range(first, last + 1):
        if _RANK[cell[1]] >= _RANK[cells[i][1]]:
            cells[i] = cell


def _put(timeline: Timeline, cells: _Cells, at: datetime, cell: tuple[str, str]) -> None:
    _fill(timeline, cells, at, at, cell)


def _pieces(cells: _Cells) -> Iterator[Piece]:
    for style, group in groupby(cells, key=lambda cell: cell[1]):
        yield "".join(sign for sign, _ in group), "mail" if style == "arrived" else style


def _times(timeline: Timeline, names: int, columns: int, glyphs: Glyphs, zone: tzinfo | None) -> Line:
    """Return the line of times; leave out a time that has no room beside the one before."""
    text = " " * columns
    free = 0
    for place, label in timeline.axis.ticks(max(columns // _TICK_ROOM, 1), zone):
        at = min(int(place * columns), columns - 1)
        shown = glyphs.tick + label
        if at >= free and at + len(shown) <= columns:
            text = text[:at] + shown + text[at + len(shown) :]
            free = at + len(shown) + 1
    return [(" " * (names + 1), ""), (text, "dim")]


def _label(guide: str, name: str, glyphs: Glyphs) -> str:
    return (guide if glyphs is UNICODE else guide.translate(_PLAIN_GUIDES)) + name


_PLAIN_GUIDES: Final = str.maketrans("└├─│", "`|-|")


def _fitted(label: str, width: int) -> str:
    end = min(NAME_END, width // 3)
    return label.ljust(width) if len(label) <= width else f"{label[: width - 2 - end]}..{label[len(label) - end :]}"


def _legend(width: int, glyphs: Glyphs) -> Iterator[Line]:
    """Yield the meaning of the glyphs, wrapped at the width."""
    line: Line = []
    for sign, style, meaning in _meanings(glyphs):
        used = sum(len(text) for text, _ in line)
        if line and used + len(sign) + len(meaning) + 3 > width:
            yield line
            line = []
        line += [(("  " if line else "") + sign, style), (f" {meaning}", "dim")]
    yield line


def _meanings(glyphs: Glyphs) -> Sequence[tuple[str, str, str]]:
    return (
        (glyphs.model, "model", "model call"),
        (glyphs.tool, "tool", "tool"),
        (glyphs.wait, "wait", "waits for others"),
        (glyphs.ask, "ask", "asks a person"),
        (glyphs.failed, "failed", "failed call"),
        (glyphs.idle, "dim", "idle"),
        (glyphs.down + glyphs.up, "mail", "sends mail"),
        (glyphs.arrived, "mail", "gets mail"),
        (glyphs.dead, "dead", "killed"),
        (glyphs.gap, "dim", "pause cut short"),
    )


def signs_for(encoding: str | None) -> Glyphs:
    """Return the glyphs that an encoding can represent."""
    wanted = "".join(getattr(UNICODE, name) for name in Glyphs.__slots__) + "".join(GLYPHS.values())
    try:
        wanted.encode(encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return ASCII
    return UNICODE
