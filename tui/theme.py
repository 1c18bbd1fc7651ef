"""The colours: our dark and our light theme, Textual's, what colours mean, and which theme a terminal gets."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter
from textual.theme import BUILTIN_THEMES, Theme

from agentmesh.domain.errors import ConfigError
from agentmesh.domain.text import one_line

READABLE = 4.5
"""The contrast that WCAG asks of text (level AA)."""


def _chosen(background: str) -> dict[str, str]:
    """Return the style of the chosen line of a list: dim words must be readable in it, and bold is no colour."""
    return {
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": background,
        "block-cursor-blurred-text-style": "bold",
    }


def _quiet_bars(bar: str, hover: str, ground: str) -> dict[str, str]:
    """Return the colours of scrollbars: they say where one is, and are never the loudest thing on the screen."""
    return {"scrollbar": bar, "scrollbar-hover": hover, "scrollbar-background": ground}


DARK = Theme(
    name="agentmesh-dark",
    primary="#6aa9ff",
    secondary="#8f9fb8",
    accent="#5cc8d7",
    warning="#e8b465",
    error="#f0717b",
    success="#7bc67e",
    foreground="#dcdfe4",
    background="#15181d",
    surface="#1a1e24",
    panel="#232831",
    dark=True,
    variables={"dim": "#98a2b2", **_chosen("#2a374b"), **_quiet_bars("#3d4654", "#8f9fb8", "#1a1e24")},
)
LIGHT = Theme(
    name="agentmesh-light",
    primary="#1f5fbf",
    secondary="#56657a",
    accent="#0b6675",
    warning="#8a5a00",
    error="#b3232f",
    success="#23702a",
    foreground="#20242a",
    background="#fbfbfa",
    surface="#f3f3f1",
    panel="#e6e7e6",
    dark=False,
    variables={"dim": "#545d69", **_chosen("#d3deee"), **_quiet_bars("#c3c8cf", "#56657a", "#f3f3f1")},
)
THEMES = (DARK, LIGHT)
_STANDS_OUT = 1.3
"""The contrast of two grounds from which one is a mark: a cursor, what is highlighted. Panels have less."""


NAMES = ("auto", "dark", "light", *sorted(name for name in BUILTIN_THEMES if not name.startswith("ansi")))
"""The values of ``[tui] theme``. The two themes of the terminal's own colours have no colours for our meanings."""

MEANINGS: Mapping[str, str] = {
    "needs you": "$text-warning",
    "failed": "$text-error",
    "working": "$text-accent",
    "done": "$text-success",
    "quiet": "$dim",
}
"""The five things that a colour says; words and glyphs say the same."""

ROLES: Mapping[str, str] = {
    "received": MEANINGS["done"],
    "running": MEANINGS["working"],
    "done": f"bold {MEANINGS['done']}",
    "idle": MEANINGS["quiet"],
    "dead": MEANINGS["quiet"],
    "failed": f"bold {MEANINGS['failed']}",
    "out of budget": f"bold {MEANINGS['needs you']}",
    "interrupted": "$foreground",
    "me": "bold $text-primary",
    "name": "$foreground",
    "dim": MEANINGS["quiet"],
    "warning": f"bold {MEANINGS['needs you']}",
}
"""How the pieces of ``agentmesh.tui.board.status`` look; their words say the same without colour."""


def theme_for(environ: Mapping[str, str], wanted: str | None = None) -> str:
    """Return the name of the theme: the wanted one, or for ``auto`` the terminal's; raise ConfigError."""
    wanted = wanted or "auto"
    if wanted not in NAMES:
        close = difflib.get_close_matches(wanted.lower(), NAMES, n=3, cutoff=0.5)
        hint = f"Did you mean {' or '.join(close)}?" if close else f"Known: {', '.join(NAMES)}."
        raise ConfigError(f"tui.theme: there is no theme called {one_line(wanted, 40)}.", hint=hint)
    if wanted in ("dark", "light"):
        return f"agentmesh-{wanted}"
    if wanted != "auto":
        return wanted
    return LIGHT.name if _is_light(environ.get("COLORFGBG", "")) else DARK.name


def theme_of(name: str) -> Theme:
    """Return one of our themes, or one of Textual's with the variables that our screen needs."""
    ours = next((known for known in THEMES if known.name == name), None)
    if ours:
        return ours
    known = BUILTIN_THEMES[name]
    colours = known.to_color_system().generate()
    foreground, background, panel = (Color.parse(colours[part]) for part in ("foreground", "background", "panel"))
    worst = min((background, panel), key=lambda ground: contrast(foreground, ground))
    steps = (foreground.blend(worst, share / 100) for share in range(40, -1, -5))
    dim = next((step for step in steps if contrast(step, worst) >= READABLE), foreground)
    chosen = background.blend(Color.parse(colours["primary"]), 0.25)
    return replace(known, variables={**known.variables, "dim": dim.hex, **_chosen(chosen.hex)})


def contrast(one: Color, other: Color) -> float:
    """Return the contrast of two colours as WCAG defines it: 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: Color) -> float:
    def linear(part: int) -> float:
        value = part / 255
        return value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4

    return 0.2126 * linear(colour.r) + 0.7152 * linear(colour.g) + 0.0722 * linear(colour.b)


class Colourless(LineFilter):
    """Takes all colours away, for NO_COLOR; what stood on a ground of its own, like a cursor, is shown in reverse."""

    def __init__(self, background: str) -> None:
        super().__init__()
        self._background = Color.parse(background)
        self._plain = lru_cache(1024)(self._without)

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:  # noqa: ARG002 - Textual's
        """Return the segments without colours."""
        return [Segment(text, style and self._plain(style), None) for text, style, _ in segments]

    def _without(self, style: Style) -> Style:
        ground = style.bgcolor
        stands_out = (
            ground is not None
            and ground.triplet is not None
            and contrast(Color.from_rich_color(ground), self._background) >= _STANDS_OUT
        )
        plain = style.without_color
        return plain + Style(reverse=True) if stands_out and not plain.reverse else plain


class SixteenColours(Colourless):
    """Says what our colours mean in the terminal's own, where it has sixteen: the nearest to most of ours is a grey."""

    def __init__(self, look: Theme) -> None:
        super().__init__(look.background or "#000000")
        colours = look.to_color_system().generate() | look.variables
        own = {**_OWN, "primary": "bright_blue" if look.dark else "blue"}
        own |= {f"text-{part}": name for part, name in own.items()} | {"dim": "dim", "foreground": "none"}
        self._own = {Color.parse(colours[part]).rgb: Style.parse(name) for part, name in own.items()}

    def _without(self, style: Style) -> Style:
        plain, colour = super()._without(style), style.color
        if plain.reverse or colour is None:
            return plain
        nearest = Style(color=colour)  # of code: Rich finds it
        return plain + (self._own.get(colour.triplet, nearest) if colour.triplet else nearest)


_OWN: Mapping[str, str] = {"warning": "yellow", "error": "red", "accent": "cyan", "success": "green"}


def _is_light(colours: str) -> bool:
    """Judge ``COLORFGBG`` ("15;0": foreground, background): 7 and 9 to 15 are light backgrounds."""
    background = colours.rpartition(";")[2]
    return background.isdigit() and (int(background) == 7 or 9 <= int(background) <= 15)
