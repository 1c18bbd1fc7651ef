"""What the last line says, and for how long."""

from __future__ import annotations

from agentmesh.tui.input.announcements import Announcements


def texts(announcements: Announcements, now: float) -> list[list[str]]:
    return [[one.text for one in line] for line in announcements.current(now)]


def test_an_answer_replaces_the_one_before_and_goes():
    announcements = Announcements()
    assert (texts(announcements, 0), announcements.changes_at()) == ([], None)
    announcements.reply("one", "", 10.0)
    announcements.reply("two", "", 11.0)
    assert texts(announcements, 16.9) == [["two"]]
    assert announcements.changes_at() == 17.0
    assert texts(announcements, 17.0) == []
    announcements.reply("three", "", 20.0)
    announcements.reply("", "", 20.1)
    assert texts(announcements, 20.1) == []


def test_what_happened_elsewhere_replaces_no_answer_and_the_newest_are_shown():
    announcements = Announcements()
    announcements.reply("refused", "", 10.0)
    for n in range(6):
        announcements.announce(f"agent {n} finished", "", 10.0 + n)
    assert texts(announcements, 15.0) == [["refused"], [f"agent {n} finished" for n in range(2, 6)]]
    assert texts(announcements, 19.0) == [[f"agent {n} finished" for n in range(4, 6)]]


def test_long_ones_stand_as_long_as_reading_takes():
    announcements = Announcements()
    announcements.reply("x" * 300, "", 0.0)
    assert announcements.changes_at() == 18.0
    announcements.reply("x" * 300, "", 0.0, 2.0)
    assert announcements.changes_at() == 2.0, "it is no longer true then"


def test_all_can_be_taken_away():
    announcements = Announcements()
    announcements.reply("one", "", 0.0)
    announcements.announce("two", "", 0.0)
    announcements.clear()
    assert texts(announcements, 0.0) == []
