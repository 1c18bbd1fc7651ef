"""Draws a figure's comparison as one SVG file that needs nothing else: bars over named values, curves over a size.

By hand, because bars and lines are a page of code, and the libraries that draw them bring ten megabytes or scripts.
All text is escaped here. The drawing has its own ground, so that it reads on a light page and on a dark one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from bench.amounts import amount

if TYPE_CHECKING:
    from bench.harness import Figure

_WIDTH: Final = 760
_EDGE: Final = 20
_ROW: Final = 44
_TOP: Final = 52
_PLOT_HEIGHT: Final = 300
_FOR_NUMBERS: Final = 120
"""Room at the right of the longest bar, for its number."""
_COLOURS: Final = ("second", "third", "fourth", "fifth")
_STYLE: Final = """
.ground{fill:#fff}text{font:13px system-ui,sans-serif;fill:#1f2328}.title{font-size:15px;font-weight:600}
.quiet{fill:#59636e;font-size:12px}.number{font-weight:600}.axis{stroke:#d1d9e0}.whisker{stroke:#1f2328;stroke-width:1.5}
.target{stroke:#cf222e;stroke-width:2}.wanted{fill:#cf222e;font-size:12px}
.ours{fill:#0969da;stroke:#0969da}.theirs{fill:#afb8c1;stroke:#afb8c1}.second{fill:#9a6700;stroke:#9a6700}
.third{fill:#1a7f37;stroke:#1a7f37}.fourth{fill:#8250df;stroke:#8250df}.fifth{fill:#57606a;stroke:#57606a}
path.line{fill:none;stroke-width:2}
@media(prefers-color-scheme:dark){.ground{fill:#0d1117}text{fill:#f0f6fc}.quiet{fill:#9198a1}.axis{stroke:#3d444d}
.whisker{stroke:#f0f6fc}.target{stroke:#ff7b72}.wanted{fill:#ff7b72}.ours{fill:#4493f8;stroke:#4493f8}
.theirs{fill:#656c76;stroke:#656c76}.second{fill:#d29922;stroke:#d29922}.third{fill:#3fb950;stroke:#3fb950}
.fourth{fill:#ab7df8;stroke:#ab7df8}.fifth{fill:#9198a1;stroke:#9198a1}path.line{fill:none}}
"""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A line at what a target demands: so many times another value's median, or so much."""

    words: str
    """What is demanded, such as ``≤ 0.6 × DBOS``."""
    factor: float
    of: str | None = None


@dataclass(frozen=True, slots=True)
class Bars:
    """Values of one unit side by side, whiskers from the least to the largest; our labels begin with agentmesh."""

    labels: Mapping[str, str]
    """Each value and what stands over its bar: who it is, and what it guarantees."""
    wanted: Wanted | None = None
    logarithmic: bool = False
    """Where the largest would hide the others; the bars then begin at a power of ten below the least."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Values of one unit over a size; logarithmic where the size grows tenfold."""

    along: str
    """What the size counts, such as ``children``."""
    lines: Mapping[str, Mapping[int, str]]
    """For each line's name, the value at each size."""
    wanted: Wanted | None = None


Picture = Bars | Curve


def draw(figure: Figure) -> str:
    """Return the SVG of a figure that has a picture and was measured."""
    match figure.picture:
        case Bars() as bars:
            return _bars(figure, bars)
        case Curve() as curve:
            return _curve(figure, curve)
    raise ValueError(f"{figure.key} has no picture")


def told(figure: Figure) -> str:
    """Return the picture in words, for those who do not see it: the median of each value that it shows."""
    match figure.picture:
        case Bars(labels):
            shown = [f"{label}: {_median(figure, value)}" for value, label in labels.items()]
        case Curve(along, lines):
            shown = [
                f"{name} at {size:,g} {along}: {_median(figure, value)}"
                for name, points in lines.items()
                for size, value in points.items()
            ]
        case None:
            shown = []
    return f"{figure.title}. {'; '.join(shown)}"


@dataclass(frozen=True, slots=True)
class _Scale:
    """Where a number lies between two places."""

    low: float
    high: float
    start: float
    length: float
    logarithmic: bool

    def at(self, number: float) -> float:
        if self.logarithmic:
            share = math.log(max(number, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (number - self.low) / (self.high - self.low)
        return self.start + share * self.length


def _bars(figure: Figure, bars: Bars) -> str:
    unit = _unit(figure, list(bars.labels))
    found = {value: figure.column(value) for value in bars.labels}
    wanted = _limit(figure, bars.wanted)
    most = max([max(column) for column in found.values()] + [wanted or 0]) or 1.0
    least = min((min(column) for column in found.values() if min(column) > 0), default=most)
    logarithmic = bars.logarithmic and least < most
    low = 10.0 ** math.floor(math.log10(least) - 0.3) if logarithmic else 0.0
    scale = _Scale(low, most, _EDGE, _WIDTH - 2 * _EDGE - _FOR_NUMBERS, logarithmic)
    bottom = _TOP + _ROW * len(found)
    parts = []
    for row, (value, column) in enumerate(found.items()):
        y = _TOP + _ROW * row
        end = scale.at(figure.median(value))
        kind = "ours" if bars.labels[value].startswith("agentmesh") else "theirs"
        # The number stands behind all of the bar, its whisker and a line that would run through it.
        after = max(end, scale.at(max(column)))
        if wanted is not None and after < scale.at(wanted) < after + _FOR_NUMBERS - 40:
            after = scale.at(wanted)
        parts += [
            _text(_EDGE, y + 14, bars.labels[value]),
            f'<rect class="{kind}" x="{_EDGE}" y="{y + 20}" width="{max(end - _EDGE, 1):.1f}" height="14" rx="2"/>',
            *_whisker(scale, column, y + 27),
            _text(after + 7, y + 32, amount(figure.median(value), unit), "number"),
        ]
    if bars.wanted and wanted is not None:
        x = scale.at(wanted)
        anchor = "end" if x > _WIDTH / 2 else "start"
        parts += [
            f'<path class="target" d="M{x:.1f} {_TOP + 18}{f"v18m0 {_ROW - 18}" * len(found)}"/>',
            _text(x, bottom + 16, f"{bars.wanted.words} ({amount(wanted, unit)})", "wanted", anchor),
        ]
    notes = ["median; whisker: least to largest of the repetitions"]
    if logarithmic:
        notes.append(f"logarithmic, from {amount(low, unit)}")
    return _page(figure, bottom + 44, [*parts, _text(_EDGE, bottom + 34, "; ".join(notes), "quiet")])


def _whisker(scale: _Scale, column: Sequence[float], y: float) -> Iterator[str]:
    if len(column) > 1:
        first, last = scale.at(min(column)), scale.at(max(column))
        yield f'<path class="whisker" d="M{first:.1f} {y - 4}v8m0 -4H{last:.1f}m0 -4v8"/>'


def _curve(figure: Figure, curve: Curve) -> str:
    values = [value for points in curve.lines.values() for value in points.values()]
    unit = _unit(figure, values)
    sizes = sorted({size for points in curve.lines.values() for size in points})
    wanted = _limit(figure, curve.wanted)
    numbers = [figure.median(value) for value in values]
    across = sizes[0] > 0 and sizes[-1] / sizes[0] >= 10 and sizes[-1] / sizes[-2] >= 2  # they grow by factors
    upward = across and min(numbers) > 0 and max(numbers) / min(numbers) >= 10
    most, least = max([*numbers, wanted or 0]) or 1.0, min(numbers)
    low = 10.0 ** math.floor(math.log10(least)) if upward else 0.0
    high = 10.0 ** math.ceil(math.log10(most)) if upward else most * 1.15
    x = _Scale(sizes[0], sizes[-1] if len(sizes) > 1 else sizes[0] + 1, _EDGE + 90, _WIDTH - 2 * _EDGE - 270, across)
    y = _Scale(low, high, _TOP + _PLOT_HEIGHT, -_PLOT_HEIGHT, upward)
    parts = list(_grid(x, y, sizes, unit))
    if curve.wanted and wanted is not None:
        parts += [
            f'<path class="target" d="M{x.start} {y.at(wanted):.1f}h{x.length}"/>',
            _text(x.start + 6, y.at(wanted) - 5, f"{curve.wanted.words} ({amount(wanted, unit)})", "wanted"),
        ]
    bottom = _TOP + _PLOT_HEIGHT + 28
    kinds = _kinds(curve.lines)
    # The rows of numbers stand in the order in which the lines end.
    for name in sorted(kinds, key=lambda name: -figure.median(_last(curve.lines[name]))):
        bottom += 22
        parts += _line(figure, name, curve.lines[name], x, y, bottom, kinds[name])
    scales = [name for name, is_so in (("size", across), ("value", upward)) if is_so]
    notes = f"{curve.along}; medians" + (f"; logarithmic: {' and '.join(scales)}" if scales else "")
    return _page(figure, bottom + 38, [*parts, _text(_EDGE, bottom + 26, notes, "quiet")])


def _line(
    figure: Figure, name: str, points: Mapping[int, str], x: _Scale, y: _Scale, row: float, kind: str
) -> Iterator[str]:
    """Yield a line and, below the drawing, the row of its numbers."""
    places = [(x.at(size), y.at(figure.median(points[size])), points[size]) for size in sorted(points)]
    path = "L".join(f"{across:.1f} {up:.1f}" for across, up, _ in places)
    yield f'<path class="line {kind}" d="M{path}"/>'
    for across, up, value in places:
        yield f'<circle class="{kind}" cx="{across:.1f}" cy="{up:.1f}" r="4"/>'
        yield _text(across, row, _median(figure, value), "number", "middle")
    yield f'<circle class="{kind}" cx="{x.start + x.length + 56:.1f}" cy="{row - 4:.1f}" r="5"/>'
    yield _text(x.start + x.length + 68, row, name)


def _last(points: Mapping[int, str]) -> str:
    return points[max(points)]


def _grid(x: _Scale, y: _Scale, sizes: Sequence[float], unit: str) -> Iterator[str]:
    for number in _ticks(y):
        yield f'<path class="axis" d="M{x.start} {y.at(number):.1f}h{x.length}"/>'
        yield _text(x.start - 8, y.at(number) + 4, amount(number, unit), "quiet", "end")
    for size in sizes:
        yield f'<path class="axis" d="M{x.at(size):.1f} {y.start}v5"/>'
        yield _text(x.at(size), y.start + 20, f"{size:,g}", "quiet", "middle")


def _ticks(scale: _Scale) -> list[float]:
    if scale.logarithmic:
        first, last = round(math.log10(scale.low)), round(math.log10(scale.high))
        return [10.0**power for power in range(first, last + 1)]
    step = 10.0 ** math.floor(math.log10(scale.high))
    while scale.high / step < 3:
        step /= 2
    return [step * count for count in range(math.floor(scale.high / step) + 1)]


def _kinds(lines: Mapping[str, object]) -> dict[str, str]:
    """Return a class for each line: ours has a colour of its own, the others take theirs in turn."""
    turn = itertools.cycle(_COLOURS)
    ours = next((name for name in lines if name.startswith("agentmesh")), None)
    return {name: "ours" if name == ours else next(turn) for name in lines}


def _page(figure: Figure, height: float, parts: Sequence[str]) -> str:
    title = f"{figure.key}: {figure.title}"
    first, *more = wrap(title, 85)
    height += 20 * len(more)
    size = f'width="{_WIDTH}" height="{height:g}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {_WIDTH} {height:g}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<desc>{escape(told(figure))}</desc>",
            f"<style>{_STYLE}</style>",
            f'<rect class="ground" {size} rx="6"/>',
            *(_text(_EDGE, 28 + 20 * row, words, "title") for row, words in enumerate([first, *more])),
            f'<g transform="translate(0 {20 * len(more)})">',
            *parts,
            "</g>",
            "</svg>\n",
        ]
    )


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    named = f' class="{kind}"' if kind else ""
    anchored = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text{named}{anchored} x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'


def _median(figure: Figure, value: str) -> str:
    return amount(figure.median(value), figure.units[value])


def _limit(figure: Figure, wanted: Wanted | None) -> float | None:
    if wanted is None:
        return None
    return wanted.factor * (figure.median(wanted.of) if wanted.of else 1.0)


def _unit(figure: Figure, values: Sequence[str]) -> str:
    units = {figure.units[value] for value in values}
    if len(units) != 1:
        raise ValueError(f"{figure.key}: a picture shows one unit, not {', '.join(sorted(units)) or 'none'}")
    return units.pop()
