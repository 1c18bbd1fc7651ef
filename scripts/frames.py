"""An animated SVG made of screens of a terminal: one after another by CSS, without scripts, fonts or files of others.

Rows that several screens share are stored once. Whoever asks for less motion sees the last screen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from typing import Any

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import DIMMED_MONOKAI
from textual.app import App

_WIDTH, _HEIGHT = 12.2, 24.4
_MARGIN, _TOP, _BOTTOM = 14.0, 46.0, 58.0
_FONT = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"
_BACKGROUND, _CHROME, _TEXT, _CAPTION = "#16181d", "#22252c", "#dcdfe4", "#efcd99"


@dataclass(frozen=True, slots=True)
class Frame:
    """One screen."""

    rows: tuple[str, ...]
    """The markup of each line, as it stands at the top left."""
    caption: str
    seconds: float


@dataclass(slots=True)
class Film:
    """Screens of one size."""

    columns: int
    lines: int
    frames: list[Frame] = field(default_factory=list)

    def add(self, screen: Iterable[Iterable[Segment]], caption: str, seconds: float) -> None:
        """Add what is on a screen now, to be shown for so long above a caption."""
        self.frames.append(Frame(tuple(_row(line) for line in screen), caption, seconds))

    def svg(self, title: str) -> str:
        """Return the picture; the title is what is read aloud instead of it."""
        width = self.columns * _WIDTH + 2 * _MARGIN
        height = self.lines * _HEIGHT + _TOP + _BOTTOM
        rows = {row: number for number, row in enumerate(dict.fromkeys(r for f in self.frames for r in f.rows))}
        shown = "\n".join(self._frame(number, frame, rows) for number, frame in enumerate(self.frames))
        return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(title)}">
<title>{escape(title)}</title>
<style>
text {{ font: 20px {_FONT}; fill: {_TEXT}; white-space: pre }}
.caption {{ font: 600 22px system-ui, sans-serif; fill: {_CAPTION} }}
.b {{ font-weight: bold }} .i {{ font-style: italic }} .u {{ text-decoration: underline }} .d {{ opacity: .6 }}
.f {{ visibility: hidden }}
.f{len(self.frames) - 1} {{ visibility: visible }}
@media (prefers-reduced-motion: no-preference) {{
{self._keyframes()}
}}
</style>
<defs>
{"".join(f'<g id="r{number}">{row}</g>{chr(10)}' for row, number in rows.items() if row)}</defs>
<rect width="100%" height="100%" rx="10" fill="{_CHROME}"/>
<circle cx="24" cy="22" r="7" fill="#ff5f57"/><circle cx="46" cy="22" r="7" fill="#febc2e"/>
<circle cx="68" cy="22" r="7" fill="#28c840"/>
<rect x="0" y="{_TOP - 6}" width="100%" height="{self.lines * _HEIGHT + 12:.1f}" fill="{_BACKGROUND}"/>
{shown}
</svg>
"""

    def _frame(self, number: int, frame: Frame, rows: dict[str, int]) -> str:
        used = "".join(
            f'<use href="#r{rows[row]}" y="{line * _HEIGHT:.1f}"/>' for line, row in enumerate(frame.rows) if row
        )
        caption_y = _TOP + self.lines * _HEIGHT + 38
        return (
            f'<g class="f f{number}"><g transform="translate({_MARGIN} {_TOP})">{used}</g>'
            f'<text class="caption" x="{_MARGIN + 4}" y="{caption_y:.1f}">{escape(frame.caption)}</text></g>'
        )

    def _keyframes(self) -> str:
        """Return the rules that show each screen in its time, over and over."""
        total = sum(frame.seconds for frame in self.frames)
        rules, at = [], 0.0
        for number, frame in enumerate(self.frames):
            begins, at = at, at + frame.seconds
            hidden_before = "0% { visibility: hidden } " if number else ""
            hidden_after = f" {at / total:.3%} {{ visibility: hidden }}" if number < len(self.frames) - 1 else ""
            rules.append(
                f"@keyframes k{number} {{ {hidden_before}{begins / total:.3%} {{ visibility: visible }}{hidden_after} "
                f"100% {{ visibility: {'hidden' if hidden_after else 'visible'} }} }}\n"
                f".f{number} {{ animation: k{number} {total:.1f}s step-end infinite }}"
            )
        return "\n".join(rules)


def still(app: App[Any], title: str) -> str:
    """Return a picture of an app's screen as it is, on the background of its theme."""
    strips = app.screen._compositor.render_strips()  # noqa: SLF001
    columns, lines = app.size
    background = app.theme_variables["background"].lower()
    backdrop = f' fill="{background}"'
    rows = [_row(line).replace(f'height="{_HEIGHT + 0.4:.1f}"{backdrop}', "") for line in strips]
    rows = [re.sub(r'<rect x="[\d.]+" width="[\d.]+" />', "", row) for row in rows]
    placed = "\n".join(f'<g transform="translate(0 {n * _HEIGHT:.1f})">{row}</g>' for n, row in enumerate(rows) if row)
    width, height = columns * _WIDTH, lines * _HEIGHT
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(title)}">
<title>{escape(title)}</title>
<style>
text {{ font: 20px {_FONT}; white-space: pre }}
.b {{ font-weight: bold }} .i {{ font-style: italic }} .u {{ text-decoration: underline }} .d {{ opacity: .6 }}
</style>
<rect width="100%" height="100%"{backdrop}/>
{placed}
</svg>
"""


def _row(line: Iterable[Segment]) -> str:
    """Return the markup of a line: the backgrounds, then the words, each where its column is."""
    backgrounds, words, column = [], [], 0
    for text, style, control in Segment.simplify(line):
        if control:
            continue
        cells = Segment(text).cell_length
        x, length = column * _WIDTH, cells * _WIDTH
        column += cells
        colour, background, classes = _look(style or Style.null())
        if background:
            backgrounds.append(
                f'<rect x="{x:.1f}" width="{length:.1f}" height="{_HEIGHT + 0.4:.1f}" fill="{background}"/>'
            )
        if stripped := text.strip():
            x += (len(text) - len(text.lstrip())) * _WIDTH
            length = Segment(stripped).cell_length * _WIDTH
            fill = f' style="fill:{colour}"' if colour else ""
            named = f' class="{classes}"' if classes else ""
            words.append(f'<text x="{x:.1f}" y="18" textLength="{length:.1f}"{named}{fill}>{escape(stripped)}</text>')
    return "".join(backgrounds + words)


def _look(style: Style) -> tuple[str, str, str]:
    """Return the colour of the words, that of the background (empty: the screen's own), and the classes."""
    colour, background = _hex(style.color, foreground=True), _hex(style.bgcolor, foreground=False)
    if style.reverse:
        colour, background = background or _BACKGROUND, colour or _TEXT
    flags = (("b", style.bold), ("i", style.italic), ("u", style.underline), ("d", style.dim))
    return colour, background, " ".join(name for name, wanted in flags if wanted)


def _hex(colour: Color | None, *, foreground: bool) -> str:
    if colour is None or colour.is_default:
        return ""
    return colour.get_truecolor(DIMMED_MONOKAI, foreground=foreground).hex
