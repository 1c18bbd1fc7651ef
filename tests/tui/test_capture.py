from __future__ import annotations

from agentmesh.domain.states import Kind
from agentmesh.tui.capture import BEGUN, ENDED, Capture, capture_in
from tests.tui.faces import row


def test_a_capture_is_open_from_its_begin_to_its_end():
    rows = [row(1, Kind.EVENT, event=BEGUN), row(2, Kind.CAPTURE, text="a"), row(3, Kind.CAPTURE, text="b\nc")]
    assert capture_in(rows) == Capture(("a", "b\nc"))
    assert capture_in([*rows, row(4, Kind.EVENT, event=ENDED)]) is None


def test_nothing_captured_is_an_open_capture_without_a_prompt():
    open_one = capture_in([row(1, Kind.EVENT, event=BEGUN)])
    assert open_one == Capture()
    assert open_one.prompt == ""


def test_texts_become_one_prompt():
    assert Capture(("first", "second\nline")).prompt == "first\n\nsecond\nline"


def test_other_rows_do_not_matter():
    rows = [
        row(1, Kind.CAPTURE, text="of an older capture"),
        row(2, Kind.EVENT, event=BEGUN),
        row(3, Kind.ASSISTANT, text="an answer meanwhile"),
        row(4, Kind.EVENT, event="interrupted"),
        row(5, Kind.CAPTURE, text="mine"),
    ]
    assert capture_in(rows) == Capture(("mine",))


def test_it_goes_on_from_what_was_open_before():
    assert capture_in([row(9, Kind.CAPTURE, text="b")], Capture(("a",))) == Capture(("a", "b"))
    assert capture_in([], None) is None
