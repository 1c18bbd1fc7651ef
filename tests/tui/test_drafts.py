from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from agentmesh.tui.input.drafts import Drafts
from agentmesh.tui.input.history import History, history_path
from tests.tui.faces import id_of


def test_each_agent_keeps_its_own_draft():
    drafts = Drafts()
    drafts.keep(id_of("a"), "for a")
    drafts.keep(id_of("b"), "for b")
    assert drafts.take(id_of("a")) == "for a"
    assert drafts.take(id_of("a")) == ""
    drafts.keep(id_of("b"), "")
    assert drafts.take(id_of("b")) == ""


def test_what_could_not_be_sent_comes_before_what_was_typed_since():
    drafts = Drafts()
    drafts.keep(id_of("a"), "typed since")
    drafts.give_back(id_of("a"), "not sent")
    drafts.give_back(id_of("b"), "alone")
    assert drafts.take(id_of("a")) == "not sent\ntyped since"
    assert drafts.take(id_of("b")) == "alone"


def history(*texts):
    one = History(None)
    for text in texts:
        one.add(text)
    return one


def test_a_walk_goes_back_and_returns_to_what_was_being_typed():
    one = history("first", "second")
    assert [one.older("draft"), one.older("second"), one.older("first")] == ["second", "first", None]
    assert [one.newer(), one.newer(), one.newer()] == ["second", "draft", None]


def test_a_draft_that_a_walk_replaced_is_the_newest_input_once_the_walk_ends_elsewhere():
    one = history("first", "second")
    one.older("draft")
    one.reset()
    assert one.newest_first() == ["draft", "second", "first"]
    one.older("other")
    one.add("third")
    assert one.newest_first() == ["third", "other", "draft", "second", "first"]
    one.older("back again")
    assert one.newer() == "back again"
    one.reset()
    assert "back again" not in one.newest_first()


def test_without_a_walk_there_is_nothing_newer():
    one = history("first")
    assert one.newer() is None
    assert History(None).older("x") is None


def test_adding_or_editing_ends_a_walk():
    one = history("first", "second")
    one.older("")
    one.older("")
    one.reset()
    assert one.older("edited") == "second"
    one.add("third")
    assert one.older("") == "third"


def test_blanks_and_repetitions_are_not_kept():
    one = history("same", "same", "  ", "other", "same")
    assert [one.older(""), one.older(""), one.older(""), one.older("")] == ["same", "other", "same", None]


@pytest.fixture
def path(tmp_path):
    return history_path(tmp_path, Path("/some/where"))


def test_it_survives_restarts_and_only_its_owner_can_read_it(path):
    History(lambda: path).add("two\nlines \ud800")
    again = History(lambda: path)
    assert again.older("") == "two\nlines \ud800"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_two_terminals_add_to_one_file(path):
    one, two = History(lambda: path), History(lambda: path)
    one.add("one")
    two.add("two")
    assert [json.loads(line) for line in path.read_text().splitlines()] == ["one", "two"]


def test_each_directory_has_its_own(tmp_path):
    assert history_path(tmp_path, Path("/a")) != history_path(tmp_path, Path("/b"))


def test_broken_lines_are_skipped(path):
    History(lambda: path).add("good")
    with path.open("a") as file:
        file.write('"cut of\n42\n')
    assert History(lambda: path).older("") == "good"


def test_a_file_that_grew_too_long_is_shortened_to_the_newest(path):
    path.parent.mkdir(parents=True)
    path.write_text("".join(f'"{n}"\n' for n in range(2500)))
    one = History(lambda: path)
    assert one.older("") == "2499"
    assert len(path.read_text().splitlines()) == 1000
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_paste_is_remembered_but_not_written(path):
    one = History(lambda: path)
    one.add("x" * 200_000)
    assert one.older("") == "x" * 200_000
    assert not path.exists()


def test_where_it_cannot_be_written_it_is_kept_in_memory(tmp_path, caplog):
    (tmp_path / "history").write_text("a file where the folder should be")
    one = History(lambda: history_path(tmp_path, Path("/x")))
    one.add("text")
    assert one.older("") == "text"
    assert "cannot be kept" in caplog.text
