"""An answer in progress is shown whole by a screen that comes late, whatever reaches it in which order."""

from __future__ import annotations

import random

import pytest

from agentmesh.tui.session.hints import StreamedPart
from agentmesh.tui.session.partial import PartialAnswer

TEXT = "".join(chr(ord("a") + n % 26) for n in range(200))


class Screen:
    """A screen and what it shows."""

    def __init__(self) -> None:
        self.partial = PartialAnswer()
        self.text = ""

    def take(self, *pieces: StreamedPart, now: float = 0.0) -> str:
        for piece in pieces:
            if shown := self.partial.take(piece, now):
                self.text = shown.text if shown.begins else self.text + shown.text
        return self.text


def live(place: int, end: int, after: int = 3) -> StreamedPart:
    return StreamedPart(after, place, TEXT[place:end])


def again(place: int, end: int, after: int = 3) -> StreamedPart:
    return live(place, end, after)._replace(is_repeated=True)


def test_what_was_missed_is_marked_and_asked_for_and_then_shown_from_the_first_word():
    screen = Screen()
    assert screen.partial.is_to_ask(0.0), "it may have come into view in the middle of an answer"
    assert not screen.partial.is_to_ask(0.0)
    assert screen.take(live(50, 60)) == "…" + TEXT[50:60]
    assert screen.partial.is_to_ask(0.0)
    assert screen.take(again(0, 70), live(70, 80)) == TEXT[:80]
    assert not screen.partial.is_to_ask(100.0)


def test_live_pieces_that_come_while_it_is_repeated_are_in_the_repeated_ones():
    screen = Screen()
    screen.take(live(50, 60), again(0, 20), live(60, 70), again(20, 40), live(70, 80), again(40, 80), live(80, 90))
    assert screen.text == TEXT[:90]


def test_what_is_repeated_for_a_second_question_changes_nothing():
    screen = Screen()
    screen.take(live(0, 60), again(0, 20), again(20, 60), live(60, 70))
    assert screen.text == TEXT[:70]
    late = Screen()
    late.take(again(0, 30), again(0, 25), again(25, 50), again(30, 60), live(60, 70))
    assert late.text == TEXT[:70]


def test_repeated_pieces_without_their_beginning_are_nothing():
    assert Screen().take(again(20, 40), again(40, 60)) == ""


def test_an_answer_that_begins_again_is_shown_anew_also_while_it_is_repeated():
    screen = Screen()
    screen.take(again(0, 30), live(0, 0), live(0, 10), again(30, 60), live(10, 20))
    assert screen.text == TEXT[:20]


def test_a_repetition_that_stops_keeps_nothing_back_for_long():
    screen = Screen()
    screen.take(live(50, 60), again(0, 30))
    assert screen.take(live(70, 80), now=1.0) == TEXT[:30]
    assert screen.take(live(80, 90), now=9.0) == TEXT[:30] + "…" + TEXT[80:90]


def test_it_asks_less_and_less_often_while_pieces_go_on_missing():
    screen = Screen()
    asked = []
    for second in range(60):
        screen.take(live(3 * second + 1, 3 * second + 2), now=float(second))
        if screen.partial.is_to_ask(float(second)):
            asked.append(second)
    assert len(asked) <= 7
    screen.partial.end()
    assert screen.take(live(0, 10, after=9)) == TEXT[:10]
    assert not screen.partial.is_to_ask(100.0)


def test_after_an_outage_it_is_asked_for_again():
    screen = Screen()
    screen.take(live(0, 30))
    screen.partial.is_to_ask(0.0)
    assert screen.partial.lose()
    assert screen.partial.is_to_ask(0.0)
    assert not screen.partial.lose()


@pytest.mark.parametrize("seed", range(50))
def test_whenever_a_screen_comes_and_however_it_is_cut_it_ends_with_the_whole_text(seed: int):
    luck = random.Random(seed)
    screen, said, repeats = Screen(), 0, -1
    came = luck.randrange(150)
    while said < len(TEXT):
        piece = live(said, min(said + luck.randrange(1, 15), len(TEXT)))
        said += len(piece.text)
        if said <= came:
            continue
        screen.take(piece)
        if screen.partial.is_to_ask(0.0):
            repeats = 0
        for _ in range(luck.randrange(3)):
            if 0 <= repeats < said:
                chunk = again(repeats, min(repeats + luck.randrange(1, 40), said))
                screen.take(chunk)
                repeats += len(chunk.text)
    while 0 <= repeats < said:
        screen.take(again(repeats, min(repeats + 30, said)))
        repeats += 30
    assert screen.text == TEXT
