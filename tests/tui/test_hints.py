from __future__ import annotations

import pytest

from agentmesh.tui.session.hints import CallOutput, Hints, StreamedPart
from tests.tui.faces import id_of

A, B = id_of("a"), id_of("b")


def heard(*payloads):
    hints = Hints()
    for payload in payloads:
        hints.receive("session_event_x", payload)
    assert hints.wake.is_set()
    return hints.take()


def test_live_text_and_changes_keep_their_order_per_agent():
    found = heard(f'live {{"{A}": [3, 0, "one"], "{B}": [0, 7, "x"]}}', f"step {A}", f'live {{"{A}": [4, 0, "two"]}}')
    assert found.streams == {
        A: [StreamedPart(3, 0, "one"), None, StreamedPart(4, 0, "two")],
        B: [StreamedPart(0, 7, "x")],
    }
    assert found.board
    assert not found.everything


def test_a_hint_may_name_several_agents():
    found = heard(f"steps {A} {B}")
    assert found.streams == {A: [None], B: [None]}
    assert found.board
    assert not found.everything


def test_live_text_alone_asks_for_no_board():
    assert not heard(f'live {{"{A}": [0, 0, "one"]}}').board


def test_the_newest_output_of_a_call_asks_for_no_reading():
    found = heard(f'output {{"{A}": [3, 0, "one"]}}', f'output {{"{A}": [3, 1, "two"], "{B}": [9, 0, "x"]}}')
    assert found.outputs == {A: CallOutput("3.1", "two"), B: CallOutput("9.0", "x")}
    assert found
    assert (found.board, found.everything, found.streams) == (False, False, {})


@pytest.mark.parametrize(
    "payload", ["output ", "output {", "output []", f'output {{"{A}": [1, 2]}}', 'output {"x": 1}']
)
def test_malformed_output_is_nothing(payload):
    assert not heard(payload)


@pytest.mark.parametrize("payload", ["reaped", "ended", "session"])
def test_what_concerns_the_session_is_read_with_the_board(payload):
    found = heard(payload)
    assert found.board
    assert found.streams == {}


@pytest.mark.parametrize("payload", ["", "news", "step nobody", "step", f"steps {A} nobody"])
def test_what_is_not_understood_may_be_anything(payload):
    assert heard(payload).everything


@pytest.mark.parametrize(
    "payload",
    ["live ", "live {", "live []", 'live {"x": [0, 0, "y"]}']
    + [f'live {{"{A}": {said}}}' for said in ("3", '"text"', "[]", '[0, "text"]', "[0, 0, 3]", '["0", 0, "text"]')],
)
def test_broken_live_text_is_nothing(payload):
    assert not heard(payload)


def test_taking_forgets():
    hints = Hints()
    hints.everything()
    assert [hints.pending, bool(hints.take()), hints.pending, bool(hints.take())] == [True, True, False, False]
