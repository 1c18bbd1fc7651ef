"""Both looks are readable: what is text stands out from whatever it may stand on."""

from __future__ import annotations

import pytest
from textual.color import Color
from textual.theme import Theme

from agentmesh.tui.theme import THEMES

READABLE = 4.5
"""The contrast that WCAG asks of text (level AA)."""
TEXTS = ("foreground", "dim", *(f"text-{role}" for role in ("error", "success", "accent", "warning", "primary")))
GROUNDS = ("background", "surface", "panel", "block-cursor-blurred-background")


def luminance(colour: Color) -> float:
    def linear(part: int) -> float:
        value = part / 255
        return value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4

    return 0.2126 * linear(colour.r) + 0.7152 * linear(colour.g) + 0.0722 * linear(colour.b)


def contrast(one: Color, other: Color) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("look", THEMES, ids=lambda look: look.name)
def test_every_text_is_readable_on_every_ground(look: Theme):
    colours = look.to_color_system().generate() | look.variables
    poor = {
        f"{text} on {ground}": round(contrast(Color.parse(colours[text]), Color.parse(colours[ground])), 2)
        for text in TEXTS
        for ground in GROUNDS
    }
    assert {pair: ratio for pair, ratio in poor.items() if ratio < READABLE} == {}
