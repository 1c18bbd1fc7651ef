"""Foreign text: what a database can hold, what a terminal can bear, what fits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmesh.domain.text import clip, fence, one_line, printable, storable, storable_json

ANY_TEXT = st.text(st.characters(), max_size=200)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [("plain\n\t🙂", "plain\n\t🙂"), ("a\x00b", "a\ufffdb"), ("\ud800x\udfff", "\ufffdx\ufffd"), ("", "")],
)
def test_storable(text: str, cleaned: str):
    assert storable(text) == cleaned


@given(st.text(st.characters(exclude_categories=[]), max_size=200))
def test_storable_text_can_be_encoded_holds_no_nul_and_has_the_same_length(text: str):
    cleaned = storable(text)
    assert "\x00" not in cleaned.encode("utf-8").decode("utf-8")
    assert len(cleaned) == len(text)
    assert storable(cleaned) == cleaned


def test_storable_json_cleans_keys_and_every_depth_and_nothing_else():
    value = {"a\x00": ["\ud800", {"b": ("x\x00", 1, None, True, 1.5)}], "n": 1}
    assert storable_json(value) == {"a\ufffd": ["\ufffd", {"b": ["x\ufffd", 1, None, True, 1.5]}], "n": 1}


def test_storable_json_writes_out_numbers_that_json_does_not_have():
    assert storable_json([float("nan"), {"a": float("inf")}, float("-inf"), 1.5]) == [
        "NaN",
        {"a": "Infinity"},
        "-Infinity",
        1.5,
    ]


def test_printable_drops_what_moves_a_cursor_or_hides_text():
    hostile = "\x1b[31mred\x1b[0m \x9b2J \x07bell \u202eevil\u202c \u2066x\u2069 \x7f\r\nnext\ttab\ud800"
    assert printable(hostile) == "[31mred[0m 2J bell evil x \nnext\ttab"


@given(ANY_TEXT)
def test_printable_text_has_no_control_characters_but_newline_and_tab(text: str):
    assert not any((ord(c) < 0x20 and c not in "\n\t") or 0x7F <= ord(c) <= 0x9F for c in printable(text))


@given(ANY_TEXT, st.integers(1, 60))
def test_one_line_is_one_line_and_never_too_long(text: str, width: int):
    line = one_line(text, width)
    assert "\n" not in line
    assert len(line) <= width


def test_one_line_says_that_it_was_cut():
    assert one_line("a\n b   c") == "a b c"
    assert one_line("x" * 10, 5) == "xxxx…"
    assert one_line("xxxxx", 5) == "xxxxx"


@pytest.mark.parametrize(
    ("text", "whole", "inline"), [("", "```", "`"), ("a ` b", "```", "``"), ("````", "`````", "`````")]
)
def test_a_fence_is_longer_than_any_backticks_in_the_text(text: str, whole: str, inline: str):
    assert (fence(text), fence(text, least=1)) == (whole, inline)


def test_clip_keeps_head_and_tail_and_says_how_much_is_gone():
    text = "begin" + "x" * 1000 + "end"
    cut = clip(text, 200)
    assert cut.startswith("begin")
    assert cut.endswith("end")
    assert "bytes cut" in cut
    assert clip("short", 200) == "short"


@given(ANY_TEXT, st.integers(80, 400))
def test_clipped_text_fits_and_is_valid(text: str, limit: int):
    assert len(clip(text * 5, limit).encode("utf-8")) <= limit
