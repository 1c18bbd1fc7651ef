"""What the terminal sends, before it is keys: pastes are text, whatever is in them."""

from __future__ import annotations

import pytest
from textual import events

from agentmesh.tui.driver import Reading
from agentmesh.tui.terminal import PasteParser, Pastes

BEGIN, END = "\x1b[200~", "\x1b[201~"
EVIL = "a\x1b[A\x1b\r\x03\x1bOP b\x9b5~\x00\x7f\x1b" + "x" * 40 + "\x1b[200~\tend\r\nlast"
REPLACED = "replacement_character"
CLEAN = "a[A\rOP b5~" + "x" * 40 + "[200~\tend\r\nlast"


def parsed(*pieces: str) -> list[object]:
    parser = PasteParser()
    seen = [event for piece in pieces for event in parser.feed(piece)]
    return [event.text if isinstance(event, events.Paste) else getattr(event, "key", event) for event in seen]


def test_control_characters_in_a_paste_are_no_keys():
    assert parsed(f"x{BEGIN}{EVIL}{END}y\r") == ["x", CLEAN, "y", "enter"]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11])
def test_a_paste_may_come_in_pieces(size):
    sent = f"x{BEGIN}{EVIL}{END}y{BEGIN}two{END}\x1b[A"
    pieces = [sent[at : at + size] for at in range(0, len(sent), size)]
    assert parsed(*pieces) == ["x", CLEAN, "y", "two", "up"]


def test_two_pastes_in_one_piece_stay_two():
    assert parsed(f"{BEGIN}one{END}x{BEGIN}two{END}") == ["one", "x", "two"]


def test_the_mark_of_the_end_inside_a_paste_does_not_end_it():
    assert parsed(f"{BEGIN}one{END}\x03two\r{END}x") == ["one[201~two\r", "x"]


def test_what_is_not_pasted_passes_as_it_is_and_at_once():
    pastes = Pastes()
    for piece in ("\x1b", "[", "200", "\x1b[A", "\x03", "\x1b"):
        assert pastes.cleaned(piece) == piece


def test_a_mark_of_the_beginning_in_two_pieces_is_seen():
    pastes = Pastes()
    assert pastes.cleaned("a\x1b[20") == "a\x1b[20"
    assert pastes.cleaned("0~b\x03") == "0~b"


def read(*pieces: bytes) -> list[str]:
    reading = Reading()
    seen = [message for piece in pieces for message in reading.messages(piece)]
    return [one.text if isinstance(one, events.Paste) else one.key for one in seen if isinstance(one, _TYPED)]


_TYPED = (events.Paste, events.Key)


def test_bytes_that_are_no_utf_8_are_read_as_such():
    assert read(b"f\xe9 ", b"\xe9", b"\x03") == ["f", REPLACED, "space", REPLACED, "ctrl+c"]
    assert read(b"\x1b[200~x\xff\ny\x1b[201~z") == ["x\ufffd\ny", "z"]
    assert read("é".encode()[:1], "é".encode()[1:]) == ["é"]


@pytest.mark.parametrize("report", ["48;24;80;0;0t\x1b[<0;5;5M", "97:65u", "99999999999u", "1114112u"])
def test_a_report_that_makes_no_sense_is_dropped(report):
    assert read(b"x", f"\x1b[{report}".encode(), b"y")[-1] == "y"


def test_a_mouse_report_of_an_old_terminal_is_dropped():
    assert read(b"x\x1b[M \xe0\x30y") == ["x", "y"]
