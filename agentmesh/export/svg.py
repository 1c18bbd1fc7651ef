"""A timeline as SVG, for a page that colours it by classes. All text in it is escaped here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, tzinfo
from html import escape
from typing import Final

from agentmesh.domain.ids import AgentId
from agentmesh.domain.text import one_line
from agentmesh.export.cleaning import line
from agentmesh.export.figures import clock, lasting
from agentmesh.export.lanes import USER, Lane, LaneSpan, Timeline

ROW: Final = 26
"""Height of a lane."""
TOP: Final = 22
"""Height of the line of times."""
_WIDTH: Final = 1150
_BAR: Final = 12
_NARROWEST: Final = 1.5
"""Smallest visible width of a span."""
_TICKS: Final = 12


def draw(timeline: Timeline, zone: tzinfo | None = None) -> Iterator[str]:
    """Yield the drawing: a line of times ``TOP`` high, then lanes ``ROW`` high, the user's first if there is one."""
    first = 1 if timeline.has_user else 0
    rows = {lane.id: i + first for i, lane in enumerate(timeline.lanes)}
    height = TOP + ROW * (len(rows) + first)
    yield f'<svg width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="time line">'
    yield (
        '<defs><marker id="head" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" markerHeight="6" orient="auto">'
        '<path d="M0 0L6 3L0 6z" class="head"/></marker></defs>'
    )
    yield from _grid(timeline, height, zone)
    if first:
        yield _line("life", 0, _WIDTH, _middle(0))
    for lane in timeline.lanes:
        yield from _lane(timeline, lane, rows[lane.id], zone)
    yield from _letters(timeline, rows, zone)
    yield "</svg>"


def _grid(timeline: Timeline, height: int, zone: tzinfo | None) -> Iterator[str]:
    free = 0.0
    for place, label in timeline.axis.ticks(_TICKS, zone):
        x = place * _WIDTH
        yield f'<path class="tick" d="M{x:.1f} {TOP - 6}V{height}"/>'
        if x >= free and x < _WIDTH - 50:
            yield f'<text class="time" x="{x + 3:.1f}" y="13">{escape(label)}</text>'
            free = x + 8 * len(label) + 8
    for began, ended, seconds in timeline.axis.gaps():
        x, width = began * _WIDTH, (ended - began) * _WIDTH
        yield (
            f'<g><rect class="gap" x="{x:.1f}" y="{TOP}" width="{width:.1f}" height="{height - TOP}"/>'
            f"<title>nothing happened for {lasting(seconds)}</title></g>"
        )


def _lane(timeline: Timeline, lane: Lane, row: int, zone: tzinfo | None) -> Iterator[str]:
    y = _middle(row)
    yield _line("life", _x(timeline, lane.began), _x(timeline, lane.ended), y)
    for span in lane.spans:
        x = _x(timeline, span.began)
        width = max(_x(timeline, span.ended) - x, _NARROWEST)
        # A wait is drawn thin, so that activities during it stay visible.
        half = _BAR / 4 if span.kind == "wait" else _BAR / 2
        kind = f"{span.kind} failed" if span.failed else span.kind
        yield (
            f'<g><rect class="{kind}" x="{x:.1f}" y="{y - half:g}" width="{width:.1f}" height="{2 * half:g}" rx="1.5"/>'
            f"<title>{escape(_span_title(lane, span, zone))}</title></g>"
        )
    if lane.died:
        x = _x(timeline, lane.ended)
        yield (
            f'<g><path class="dead" d="M{x - 4:.1f} {y - 4:g}l8 8m0 -8l-8 8"/>'
            f"<title>{escape(lane.name)} was killed at {clock(lane.ended, zone)}</title></g>"
        )


def _letters(timeline: Timeline, rows: Mapping[AgentId, int], zone: tzinfo | None) -> Iterator[str]:
    names = {lane.id: lane.name for lane in timeline.lanes}
    for letter in timeline.letters:
        x = _x(timeline, letter.sent_at)
        to = rows[letter.recipient]
        start = 0 if letter.sender is USER else rows.get(letter.sender)
        sender = "user" if letter.sender is USER else names.get(letter.sender, "an agent that is not drawn")
        told = f"{sender} → {names[letter.recipient]}, {clock(letter.sent_at, zone)}"
        kind = "mail automatic" if letter.automatic else "mail"
        end = _middle(to) - (4 if start is None or start < to else -4)
        begin = _middle(start) if start is not None else end - 8
        unread = letter.read_seq is None
        target = f"mail-{letter.id:d}" if unread else f"row-{letter.recipient}-{letter.read_seq}"
        yield (
            f'<a href="#{target}"><path class="reach" d="M{x:.1f} {begin:g}V{end:g}"/>'
            f'<circle class="{kind}" cx="{x:.1f}" cy="{begin:g}" r="2"/>'
            f'<path class="{kind}" d="M{x:.1f} {begin:g}V{end:g}" marker-end="url(#head)"/>'
            f"<title>{escape(told)}</title></a>"
        )


def _span_title(lane: Lane, span: LaneSpan, zone: tzinfo | None) -> str:
    name = one_line(line(span.name), 60)
    what = {"model": f"model call, {name}", "tool": name, "wait": f"in {name}", "ask": f"asks a person: {name}"}
    times = f" (and {span.count - 1:,} more)" if span.count > 1 else ""
    going = ", goes on" if span.open else ", failed" if span.failed else ""
    took = lasting(span.ended - span.began)
    return f"{lane.name}: {what[span.kind]}{times}, {clock(span.began, zone)}, {took}{going}"


def _middle(row: int) -> float:
    return TOP + ROW * row + ROW / 2


def _x(timeline: Timeline, at: datetime) -> float:
    # Room at both ends, so that a cross and an arrow's head are drawn completely.
    return 6 + timeline.axis.place(at) * (_WIDTH - 12)


def _line(kind: str, begin: float, end: float, y: float) -> str:
    return f'<path class="{kind}" d="M{begin:.1f} {y:g}H{end:.1f}"/>'
