from __future__ import annotations

import pytest

from agentmesh.app.attaching import MENTION
from agentmesh.tui.input.files import Files, Mention, mention, written


@pytest.mark.parametrize(
    ("text", "cursor", "found"),
    [
        ("@", 1, Mention(0, "")),
        ("look at @src/ma", 15, Mention(8, "src/ma")),
        ("look at @src/ma now", 12, Mention(8, "src")),
        ("first\nsecond @x", 15, Mention(13, "x")),
        ("(@x", 3, Mention(1, "x")),
        ("a@b.c", 5, None),
        ("@x y", 4, None),
        ("@x\n", 3, None),
        ("", 0, None),
    ],
)
def test_a_mention_begins_a_word_and_ends_at_the_cursor(text, cursor, found):
    assert mention(text, cursor) == found


@pytest.fixture
def files(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("ignored/\n*.log\n")
    for name in ("src/main.py", "src/deep/maintenance.md", "README.md", "ignored/main.py", "debug.log"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    found = Files(tmp_path)
    found.matches("")
    assert found.settle(10)
    return found


def test_files_are_found_fuzzily_the_best_first(files):
    assert files.matches("main")[0] == "src/main.py"
    assert files.matches("sdmd") == ["src/deep/maintenance.md"]
    assert files.matches("readme") == ["README.md"]
    assert files.matches("nothing-like-it") == []


def test_what_git_ignores_is_left_out(files):
    assert set(files.matches("")) == {".gitignore", "README.md", "src/main.py", "src/deep/maintenance.md"}


def test_no_more_are_offered_than_asked_for(files):
    assert len(files.matches("", limit=2)) == 2


def test_before_the_first_list_there_is_nothing(tmp_path):
    files = Files(tmp_path)
    assert not files.is_complete
    assert files.matches("x") == []
    assert files.settle(10)


def test_a_directory_that_is_gone_has_no_files(tmp_path):
    files = Files(tmp_path / "gone")
    files.matches("")
    assert files.settle(10)
    assert files.matches("") == []


@pytest.mark.parametrize("path", ["src/main.py", "a dir/x.txt", "it's", "a@b", "tab\there", 'quo"te.txt'])
def test_a_mention_that_is_completed_names_the_file(path):
    (found,) = MENTION.findall(f"look at {written(path)} now")
    assert "".join(found) == path
