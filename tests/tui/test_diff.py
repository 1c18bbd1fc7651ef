"""Diffs: how they are made, their lines and numbers, and how they are drawn in any width."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from agentmesh.tui.conversation.diff import SIDE_BY_SIDE, DiffView
from agentmesh.tui.conversation.diff_lines import DiffLine, parse, side_by_side, stacked, without_tabs
from agentmesh.tui.requests.line_diff import unified
from tests.tui.piloting import Show, called, puppet, result

DIFF = """--- a/f.py
+++ b/f.py
@@ -1,4 +1,5 @@
 def add(a, b):
-    return a - b
+    total = a + b
+    return total
 #
 x = 1
@@ -20,2 +21,1 @@
 y = 2
--- not a file name
\\ No newline at end of file"""


def signs(lines: list[DiffLine]) -> list[tuple[Any, ...]]:
    return [(line.sign, line.old, line.new) for line in lines]


def test_lines_are_numbered_as_in_the_files():
    lines = parse(DIFF)
    first = [(" ", 1, 1), ("-", 2, None), ("+", None, 2), ("+", None, 3), (" ", 3, 4), (" ", 4, 5)]
    assert signs(lines) == [*first, ("@", None, None), (" ", 20, 21), ("-", 21, None), ("", None, None)]
    assert (lines[-2].text, lines[-1].text) == ("-- not a file name", "No newline at end of file")


def test_what_was_clipped_has_no_wrong_numbers():
    clipped = "@@ -1,9 +1,9 @@\n a\n+b\n[... 900 bytes cut ...]\nrest of a line\n+c\n@@ -50 +50 @@\n-d\n+e"
    assert signs(parse(clipped)) == [
        (" ", 1, 1),
        ("+", None, 2),
        ("", None, None),
        ("", None, None),
        ("+", None, None),
        ("@", None, None),
        ("-", 50, None),
        ("+", None, 50),
    ]


@pytest.mark.parametrize("text", ["", "(nothing changes)", "@@", "@@ -x +y @@", "+", "-", "\\", "--- a", "[b]x[/b]"])
def test_no_text_is_too_strange_to_be_shown(text):
    for line in parse(text):
        assert isinstance(line, DiffLine)
    assert stacked(parse(text), 1) is not None
    assert side_by_side(parse(text), 1) is not None


def test_tabs_and_wide_characters_end_at_the_same_stops():
    assert without_tabs("a\tb") == "a   b"
    assert without_tabs("\t\tb") == "        b"
    assert without_tabs("漢\tb") == "漢  b"
    assert without_tabs("x\u2028y") == "x\\u2028y"


@example("\u200d\u200db  漢é\té\u0301漢漢\té", 20)
@example("\u200d\u200d漢👩é漢b\u200d", 4)
@given(st.text(alphabet="ab漢❤\ufe0fé\u0301👩\u200d \t", max_size=60), st.integers(1, 30))
def test_nothing_of_a_line_is_left_out(text, width):
    lines = [DiffLine("+", without_tabs(text), None, 1)]
    rows = stacked(lines, width)
    shown = [lines[0].text[row.left.start : row.left.end] for row in rows if row.left]
    assert "".join(shown) == lines[0].text
    assert all(cell_len(piece) <= max(width, 2) for piece in shown)


def test_removed_and_added_lines_stand_side_by_side():
    rows = [(row.left and row.left.line, row.right and row.right.line) for row in side_by_side(parse(DIFF), 40)]
    assert rows == [(0, 0), (1, 2), (None, 3), (4, 4), (5, 5), (6, None), (7, 7), (8, None), (9, None)]


def applied(before: str, diff: str) -> str:
    """Return what a diff makes of a text."""
    old, made, at = before.split("\n"), [], 0
    for line in parse(diff):
        if line.sign in (" ", "-") and line.old is not None:
            made += old[at : line.old - 1]
            at = line.old
            assert old[at - 1] == line.text
        if line.sign in (" ", "+"):
            made.append(line.text)
    return "\n".join([*made, *old[at:]])


TEXTS = st.lists(st.sampled_from(["a", "b", "c", "", "-- x", "++ y", "@@ z"]), max_size=30)


@given(TEXTS, TEXTS)
def test_a_diff_makes_the_new_text_of_the_old_one(before, after):
    old, new = "".join(f"{line}\n" for line in before), "".join(f"{line}\n" for line in after)
    assert applied(old, "\n".join(unified(old, new))) == new or old == new


@pytest.mark.parametrize("kind", ["new", "shuffled", "every other", "few words", "blank between"])
def test_thousands_of_changed_lines_are_compared_at_once(kind):
    count, chance = 5000, random.Random(1)
    old = [f"line {n}" for n in range(count)]
    new = {
        "new": [f"x {n}" for n in range(count)],
        "shuffled": chance.sample(old, count),
        "every other": [line if n % 2 else f"y {n}" for n, line in enumerate(old)],
        "few words": [chance.choice("abcdefgh") for _ in range(count)],
        "blank between": ["" if n % 2 else f"z {n}" for n in range(count)],
    }[kind]
    before, after = ("".join(f"{line}\n" for line in lines) for lines in (old, new))
    began = time.perf_counter()
    diff = "\n".join(unified(before, after))
    assert time.perf_counter() - began < 1
    assert applied(before, diff) == after


def edit(diff: str, path: str = "f.py") -> tuple[Any, Any]:
    return called(1, "edit", f'{{"path": "{path}"}}'), result(2, 1, "edit", {"path": path, "diff": diff})


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (160, 50)])
def test_it_is_drawn_in_any_width(size):
    long = DIFF.replace("x = 1", "x = '" + "漢字\t" * 60 + "'")

    async def scene(show: Show) -> None:
        await show.rows(*edit(long))
        await show.until(lambda: show.app.query(DiffView))
        assert all(cell_len(line) <= size[0] for line in show.lines)

    puppet(scene, size=size)


def test_side_by_side_where_there_is_room():
    async def scene(show: Show) -> None:
        await show.rows(*edit(DIFF))
        await show.sees(" 2 -    return a - b", "│ 2 +    total = a + b")
        await show.pilot.resize_terminal(SIDE_BY_SIDE, 30)
        await show.sees(" 2 +    total = a + b")
        assert "│ 2 +" not in show.text

    puppet(scene, size=(160, 30))


def test_a_new_file_needs_no_empty_half():
    async def scene(show: Show) -> None:
        await show.rows(*edit("@@ -0,0 +1,2 @@\n+a\n+b"))
        await show.sees("1 +a", "2 +b")
        assert "│" not in show.text

    puppet(scene, size=(160, 30))


def test_foreign_text_is_never_markup():
    async def scene(show: Show) -> None:
        await show.rows(*edit("@@ -1 +1 @@\n-[red]x[/red] [/]\n+[link=file:///etc]y[/link]", "f.md"))
        await show.sees("-[red]x[/red] [/]", "+[link=file:///etc]y[/link]")

    puppet(scene)


@pytest.mark.parametrize("path", ["f.py", "f.unknown", "Makefile", "x.js", "", "a/b.rs", "no/dot"])
def test_any_name_of_a_file_will_do(path):
    async def scene(show: Show) -> None:
        await show.rows(*edit(DIFF, path))
        await show.sees("-    return a - b")
        view = show.app.query_one(DiffView)
        await show.until(lambda: view._language or path not in ("f.py", "x.js", "a/b.rs"))
        await show.sees("+    return total")

    puppet(scene)


def test_thousands_of_lines_are_drawn_as_fast_as_some():
    diff = "@@ -1,5000 +1,5000 @@\n" + "\n".join(f"-old {n}\n+new = '{n}'" for n in range(5000))

    async def scene(show: Show) -> None:
        await show.rows(*edit(diff))
        await show.sees("▸ edit")
        began = time.perf_counter()
        await show.press("tab", "enter")
        await show.until(lambda: show.app.query(DiffView))
        await show.press("ctrl+end")
        await show.sees("5000 +new = '4999'")
        assert time.perf_counter() - began < 5

    puppet(scene)


def test_a_selection_is_copied_with_signs():
    async def scene(show: Show) -> None:
        await show.rows(*edit("@@ -1 +1 @@\n-old\n+new"))
        await show.sees("1 -old")
        view = show.app.query_one(DiffView)
        view.text_select_all()
        await show.pilot.pause()
        selected = show.app.screen.get_selected_text() or ""
        assert [line.strip() for line in selected.splitlines() if line.strip()] == ["1 -old", "1 +new"]

    puppet(scene)
