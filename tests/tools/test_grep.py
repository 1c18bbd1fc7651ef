from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentmesh.domain.cancel import Cancel, CancelReason
from agentmesh.engine.tool import ToolError
from agentmesh.tools.grep import Grep
from agentmesh.tools.guarded_run import Spawner
from tests.tools.calling import call, context


@pytest.fixture
def spawner() -> Iterator[Spawner]:
    started = Spawner()
    yield started
    started.close()


@pytest.fixture
def grep(spawner: Spawner) -> Grep:
    return Grep(spawner)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "a.txt").write_text("one\nNeedle (here)\nthree\n")
    (tmp_path / "src" / "b.py").write_text("x = 'needle'\r\ny = 2\r\n")
    (tmp_path / "bin").write_bytes(b"needle\0")
    return tmp_path


def test_matches_come_with_path_line_and_text(grep: Grep, tree: Path):
    found = call(grep, tree, pattern="needle", glob="*.{txt,py}")
    assert found == {"matches": [{"path": "src/b.py", "line": 1, "text": "x = 'needle'"}]}


def test_case_can_be_ignored(grep: Grep, tree: Path):
    found = call(grep, tree, pattern="NEEDLE", ignore_case=True)["matches"]
    assert [match["path"] for match in found] == ["a.txt", "src/b.py"]


def test_patterns_are_regular_expressions_for_one_line(grep: Grep, tree: Path):
    assert [m["line"] for m in call(grep, tree, pattern=r"^N.*\(here\)$")["matches"]] == [2]
    assert call(grep, tree, pattern=r"one\s+Needle")["matches"] == []


def test_context_lines_come_apart(grep: Grep, tree: Path):
    (match,) = call(grep, tree, pattern="Needle", context=1)["matches"]
    assert (match["before"], match["after"]) == (["one"], ["three"])


@pytest.mark.parametrize("where", [{"path": "src"}, {"path": "src/b.py"}, {"glob": "*.py"}, {"glob": "src/**/*.py"}])
def test_the_search_can_be_narrowed(grep: Grep, tree: Path, where: dict[str, str]):
    assert [m["path"] for m in call(grep, tree, pattern="(?i)needle", **where)["matches"]] == ["src/b.py"]


def test_ignored_files_are_left_out(grep: Grep, tree: Path):
    (tree / ".gitignore").write_text("src\n")
    assert call(grep, tree, pattern="needle")["matches"] == []


def test_many_matches_are_cut_and_said_so(grep: Grep, tmp_path: Path):
    (tmp_path / "a").write_text("x\n" * 2000)
    result = call(grep, tmp_path, pattern="x")
    assert (len(result["matches"]), result["truncated"]) == (500, True)


def test_long_lines_are_cut_around_the_match(grep: Grep, tmp_path: Path):
    (tmp_path / "a").write_text("a" * 100_000 + "needle" + "b" * 100_000)
    (match,) = call(grep, tmp_path, pattern="needle")["matches"]
    assert "needle" in match["text"]
    assert len(match["text"]) < 500


def test_a_catastrophic_pattern_is_ended(spawner: Spawner, tmp_path: Path):
    (tmp_path / "a").write_text("first\n")
    (tmp_path / "b").write_text("a" * 60 + "b\n")
    result = call(Grep(spawner, seconds=0.5), tmp_path, pattern="(a+)+$|first")
    assert result["truncated"] is True
    assert [match["path"] for match in result["matches"]] == ["a"]


def test_cancel_ends_a_catastrophic_pattern(spawner: Spawner, tmp_path: Path):
    (tmp_path / "a").write_text("a" * 60 + "b\n")
    cancel = Cancel()
    failures: list[str] = []

    def search() -> None:
        try:
            call(Grep(spawner, seconds=600), context(tmp_path, cancel=cancel), pattern="(a+)+$")
        except ToolError as error:
            failures.append(str(error))

    thread = threading.Thread(target=search)
    thread.start()
    cancel.set(CancelReason.KILL)
    thread.join(20)
    assert failures == ["Interrupted."]


@pytest.mark.parametrize("pattern", ["(", "[z-a]", "*", "(?P<a>x)(?P<a>y)"])
def test_a_pattern_that_is_none_is_refused_in_words(grep: Grep, tree: Path, pattern: str):
    with pytest.raises(ToolError, match="cannot be used"):
        call(grep, tree, pattern=pattern)


def test_links_to_files_outside_are_not_read(grep: Grep, tree: Path, tmp_path_factory: pytest.TempPathFactory):
    secret = tmp_path_factory.mktemp("outside") / "secret"
    secret.write_text("canary\n")
    (tree / "link").symlink_to(secret)
    assert call(grep, tree, pattern="canary")["matches"] == []
    with pytest.raises(ToolError):
        call(grep, tree, pattern="canary", path="link")


@pytest.fixture
def unsearched(tmp_path: Path) -> Path:
    """A directory whose files have a needle that no search finds, each for another reason."""
    (tmp_path / "bin").write_bytes(b"needle\0")
    (tmp_path / "bin2").write_bytes(b"\0needle")
    (tmp_path / "large").write_bytes(b"needle\n" * (11 << 20 >> 3) * 2)
    (tmp_path / "le.txt").write_bytes("needle\n".encode("utf-16"))
    (tmp_path / "be.txt").write_bytes(b"\xfe\xff" + "needle\n".encode("utf-16-be"))
    (tmp_path / "link").symlink_to("bin")
    return tmp_path


def test_files_that_were_not_searched_are_counted_by_reason(grep: Grep, unsearched: Path):
    assert call(grep, unsearched, pattern="needle") == {
        "matches": [],
        "note": "Not searched: 2 in UTF-16, 2 binary, 1 over 10 MiB, 1 linked.",
    }
    assert call(grep, unsearched, pattern="needle", glob="*.txt")["note"] == "Not searched: 2 in UTF-16."
    (unsearched / "a.txt").write_text("needle")
    assert "note" not in call(grep, unsearched, pattern="needle", glob="a.txt")


def test_files_that_cannot_be_read_are_counted_too(grep: Grep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "gone").write_text("needle")
    (tmp_path / "b").write_text("needle")
    search = Grep._search

    def late(self: Grep, *others: Any) -> Any:
        (tmp_path / "gone").unlink()  # as an unreadable file, for root too
        return search(self, *others)

    monkeypatch.setattr(Grep, "_search", late)
    found = call(grep, tmp_path, pattern="needle")
    assert ([match["path"] for match in found["matches"]], found["note"]) == (["b"], "Not searched: 1 unreadable.")


def test_a_note_on_unsearched_files_stands_beside_others(grep: Grep, unsearched: Path):
    (unsearched / "a.txt").write_text("needle\n" * 600)
    found = call(
        grep, context(unsearched, withheld=lambda path: path == "link"), pattern="needle", glob="{a.txt,bin,link}"
    )
    narrow, withheld = found["note"].split(": narrow the pattern or the path. ")
    assert narrow == "There are more than these 500 matches"
    assert withheld.startswith("1 file is left out"), "bin comes after the last match"
    (unsearched / "z.bin").write_bytes(b"\0")
    found = call(grep, context(unsearched, withheld=lambda path: path == "link"), pattern="x", glob="*in*")
    assert found["note"] == ("Not searched: 3 binary. 1 file is left out: permission rules keep them from being read.")


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("bin", "bin is not searched: it is binary."),
        ("large", "large is not searched: it is over 10 MiB."),
        ("le.txt", "le.txt is not searched: it is in UTF-16."),
        ("be.txt", "be.txt is not searched: it is in UTF-16."),
        ("link", "bin is not searched: it is binary."),
    ],
)
def test_a_named_file_that_is_not_searched_is_an_error(grep: Grep, unsearched: Path, path: str, why: str):
    with pytest.raises(ToolError) as caught:
        call(grep, unsearched, pattern="needle", path=path)
    assert str(caught.value) == why
    assert "`bash`" in caught.value.hint


def test_a_byte_order_mark_is_no_part_of_the_first_line(grep: Grep, tmp_path: Path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbffirst\nsecond\n")
    assert call(grep, tmp_path, pattern="^first$")["matches"] == [{"path": "a", "line": 1, "text": "first"}]


def test_a_missing_path_is_answered_with_close_names(grep: Grep, tree: Path):
    with pytest.raises(ToolError) as caught:
        call(grep, tree, pattern="x", path="scr")
    assert "src" in caught.value.hint


def test_a_pattern_as_path_is_answered_with_where_patterns_go(grep: Grep, tree: Path):
    with pytest.raises(ToolError, match="does not exist") as caught:
        call(grep, tree, pattern="x", path="src/**/*.{js,ts}")
    assert "no pattern" in caught.value.hint


def test_withheld_files_are_neither_searched_nor_named(grep: Grep, tree: Path):
    (tree / "src" / "key.pem").write_text("needle")
    (tree / "key.pem").write_text("needle")
    where = context(tree, withheld=lambda path: path.endswith(".pem"))
    (tree / "bin").unlink()
    result = call(grep, where, pattern="needle")
    assert [match["path"] for match in result["matches"]] == ["src/b.py"]
    assert result["note"] == "2 files are left out: permission rules keep them from being read."
    below = call(grep, where, pattern="needle", path="src")
    assert below["note"] == "1 file is left out: permission rules keep them from being read."
    alone = call(grep, where, pattern="needle", path="src/key.pem")
    assert alone["matches"] == []
    assert "left out" in alone["note"]


def test_what_is_withheld_is_asked_of_paths_as_rules_see_them(grep: Grep, tree: Path):
    asked: list[str] = []

    def is_withheld(path: str) -> bool:
        asked.append(path)
        return False

    call(grep, context(tree, withheld=is_withheld), pattern="x", path="src")
    assert asked == ["src/b.py"]
    asked.clear()
    call(grep, context(tree / "src", withheld=is_withheld, outside=True), pattern="x", path=str(tree / "a.txt"))
    assert asked == [f"{tree}/a.txt"]
