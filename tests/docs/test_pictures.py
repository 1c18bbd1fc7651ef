"""The pictures of docs/pictures: all are there, small, and refer to nothing outside of themselves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.pictures import FOLDER, SCENES, SIZES, index

NAMES = [f"{name}-{width}x{height}.svg" for name in SCENES for width, height in SIZES]


def test_the_folder_has_the_scenes_at_each_size_and_nothing_else():
    assert {file.name for file in FOLDER.iterdir()} == {*NAMES, "README.md"}
    assert (FOLDER / "README.md").read_text(encoding="utf-8") == index()


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_small_and_self_contained(name: str):
    file = Path(FOLDER / name)
    svg = file.read_text(encoding="utf-8")
    assert file.stat().st_size < 60_000
    assert re.findall(r"https?://[^\"]*", svg)[0] == "http://www.w3.org/2000/svg"
    assert not re.search(r"<script|<image|<foreignObject|@import|@font-face|url\(|xlink:href", svg)
