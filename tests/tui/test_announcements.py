"""What the last line says, and for how long."""

from __future__ import annotations

from agentmesh.tui.input.announcements import Sayings


def texts(sayings: Sayings, now: float) -> list[list[str]]:
    return [[one.text for one in line] for line in sayings.current(now)]


def test_an_answer_replaces_the_one_before_and_goes():
    sayings = Sayings()
    assert (texts(sayings, 0), sayings.changes_at()) == ([], None)
    sayings.answer("one", "", 10.0)
    sayings.answer("two", "", 11.0)
    assert texts(sayings, 16.9) == [["two"]]
    assert sayings.changes_at() == 17.0
    assert texts(sayings, 17.0) == []
    sayings.answer("three", "", 20.0)
    sayings.answer("", "", 20.1)
    assert texts(sayings, 20.1) == []


def test_what_happened_elsewhere_replaces_no_answer_and_the_newest_are_shown():
    sayings = Sayings()
    sayings.answer("refused", "", 10.0)
    for n in range(6):
        sayings.happened(f"agent {n} finished", "", 10.0 + n)
    assert texts(sayings, 15.0) == [["refused"], [f"agent {n} finished" for n in range(2, 6)]]
    assert texts(sayings, 19.0) == [[f"agent {n} finished" for n in range(4, 6)]]


def test_long_ones_stand_as_long_as_reading_takes():
    sayings = Sayings()
    sayings.answer("x" * 300, "", 0.0)
    assert sayings.changes_at() == 18.0


def test_all_can_be_taken_away():
    sayings = Sayings()
    sayings.answer("one", "", 0.0)
    sayings.happened("two", "", 0.0)
    sayings.clear()
    assert texts(sayings, 0.0) == []
