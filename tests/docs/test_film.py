"""The moving picture of the README: made of screens, shown one after another, and loading nothing from elsewhere."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest
from rich.segment import Segment
from rich.style import Style

from scripts.frames import Film
from tests.docs.blocks import ROOT

_SVG = "{http://www.w3.org/2000/svg}"


def _film() -> Film:
    film = Film(columns=20, lines=2)
    film.add([[Segment("$ ls")], [Segment("a<b", Style(color="#ff0000", bgcolor="#0000ff"))]], "first", 1.0)
    film.add([[Segment("$ ls")], [Segment("  & c", Style(bold=True))]], "second", 3.0)
    return film


def _groups(svg: str) -> list[str]:
    return [group.get("class", "") for group in ET.fromstring(svg).iter(f"{_SVG}g") if group.get("class")]


def test_every_screen_has_its_time_and_shared_rows_are_stored_once():
    svg = _film().svg("Two screens")
    assert _groups(svg) == ["f f0", "f f1"]
    assert svg.count("$ ls") == 1
    assert svg.count('href="#r0"') == 2
    assert "@keyframes k0 { 0.000% { visibility: visible } 25.000% { visibility: hidden }" in svg
    assert (
        "@keyframes k1 { 0% { visibility: hidden } 25.000% { visibility: visible } 100% { visibility: visible } }"
        in svg
    )


def test_who_asks_for_less_motion_sees_the_last_screen():
    still, _, moving = _film().svg("Two screens").partition("@media (prefers-reduced-motion: no-preference)")
    assert ".f { visibility: hidden }\n.f1 { visibility: visible }" in still
    assert "animation" not in still
    assert moving.count("animation: k") == 2


def test_words_are_no_markup_and_stand_in_their_column():
    svg = _film().svg("Two screens")
    assert 'textLength="36.6" style="fill:#ff0000">a&lt;b</text>' in svg
    assert '<text x="24.4" y="18" textLength="36.6" class="b">&amp; c</text>' in svg
    assert 'fill="#0000ff"/>' in svg


@pytest.mark.parametrize("words", ["Review this directory", "Leave out the slow tests", "All four have reported:"])
def test_the_committed_film_tells_the_story(words):
    svg = (ROOT / "docs" / "film.svg").read_text(encoding="utf-8")
    assert words in svg


def test_the_committed_film_is_small_and_loads_nothing():
    svg = (ROOT / "docs" / "film.svg").read_text(encoding="utf-8")
    assert len(svg) < 700_000
    assert len(_groups(svg)) > 8
    assert re.findall(r"https?://[^\"]+", svg) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"<script|@import|url\(|<image", svg)
