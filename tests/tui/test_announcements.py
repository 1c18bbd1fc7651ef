"""What the last line says, and for how long."""

from __future__ import annotations

from agentmesh.tui.input.announcements import Announcements, Offer


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


def test_an_offer_goes_when_it_no_longer_counts_and_the_reply_stays():
    announcements = Announcements()
    announcements.reply("interrupted", "", 10.0, Offer("again: more", 0.5))
    assert texts(announcements, 10.4) == [["interrupted", "again: more"]]
    assert announcements.changes_at() == 10.5
    assert texts(announcements, 10.5) == [["interrupted"]]
    assert announcements.changes_at() == 16.0
    announcements.reply("", "", 11.0, Offer("again: leaves", 2.0))
    announcements.reply("typed on", "", 11.5)
    assert texts(announcements, 11.5) == [["typed on"]], "the last key was another"


def test_all_can_be_taken_away():
    announcements = Announcements()
    announcements.reply("one", "", 0.0)
    announcements.announce("two", "", 0.0)
    announcements.clear()
    assert texts(announcements, 0.0) == []
