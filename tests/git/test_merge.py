from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from agentmesh.git.facts import Merged
from agentmesh.git.merging import conflicts, merge
from tests.git.repositories import Repository, Workspace, on_disk

TEN = "".join(f"{number}\n" for number in range(10))


class Three:
    """A base and two trees made from it."""

    def __init__(self, repository: Repository, workspace: Workspace, folder: Path) -> None:
        self.repository = repository
        self.ours = workspace
        repository.write("ten", TEN)
        repository.write("bytes", b"\0one")
        self.base = workspace.take("refs/agentmesh/s/a/base").tree
        self.theirs = workspace.own(folder)

    def merge(self, *, markers: bool = False) -> Merged:
        ours = self.ours.take("refs/agentmesh/s/a/1").tree
        theirs = self.theirs.take("refs/agentmesh/s/b/1").tree
        names = ("parent", "child")
        merged = merge(self.ours.place, self.base, ours, theirs, markers=markers, names=names)
        assert conflicts(self.ours.place, self.base, ours, theirs, names=names) == merged.conflicts
        return merged


@pytest.fixture
def three(repository: Repository, workspace: Workspace, tmp_path: Path) -> Three:
    return Three(repository, workspace, tmp_path / "trees" / "own")


def test_changes_of_different_files_are_merged(three: Three):
    three.repository.write("a.txt", "ours\n")
    three.repository.write("ours/new", "o\n")
    (three.theirs.root / "folder" / "b.txt").write_text("theirs\n")
    (three.theirs.root / "bytes").unlink()
    (three.theirs.root / "theirs").write_text("t\n")
    before = on_disk(three.repository.top)
    merged = three.merge()
    assert merged.conflicts == ()
    assert [(each.path, each.status) for each in merged.changes] == [
        ("bytes", "removed"),
        ("folder/b.txt", "changed"),
        ("theirs", "added"),
    ]
    files = three.repository.files(merged.tree or "")
    assert {path: data for path, (_, data) in files.items()} == {
        "a.txt": b"ours\n",
        "folder/b.txt": b"theirs\n",
        "ours/new": b"o\n",
        "ten": TEN.encode(),
        "theirs": b"t\n",
    }
    assert on_disk(three.repository.top) == before


def test_changes_of_one_file_are_merged_by_lines(three: Three):
    three.repository.write("ten", TEN.replace("1\n", "ours\n"))
    (three.theirs.root / "ten").write_text(TEN.replace("8\n", "theirs\n"))
    merged = three.merge()
    text = three.repository.files(merged.tree or "")["ten"][1].decode()
    assert text == TEN.replace("1\n", "ours\n").replace("8\n", "theirs\n")


def test_a_conflict_has_no_result_and_says_both_sides(three: Three):
    three.repository.write("ten", TEN.replace("5\n", "ours\n"))
    (three.theirs.root / "ten").write_text(TEN.replace("5\n", "theirs\n"))
    merged = three.merge()
    assert (merged.tree, merged.changes) == (None, ())
    (conflict,) = merged.conflicts
    assert conflict.path == "ten"
    assert "ours\n" in (conflict.ours or "")
    assert "theirs\n" in (conflict.theirs or "")
    assert "<<<<<<< parent\nours\n=======\ntheirs\n>>>>>>> child\n" in conflict.both


def test_with_markers_both_sides_are_in_the_result(three: Three):
    three.repository.write("ten", TEN.replace("5\n", "ours\n"))
    three.repository.write("bytes", b"\0ours")
    (three.repository.top / "a.txt").unlink()
    (three.theirs.root / "ten").write_text(TEN.replace("5\n", "theirs\n"))
    (three.theirs.root / "bytes").write_bytes(b"\0theirs")
    (three.theirs.root / "a.txt").write_text("still wanted\n")
    (three.theirs.root / "clean").write_text("c\n")
    merged = three.merge(markers=True)
    assert sorted(each.path for each in merged.conflicts) == ["a.txt", "bytes", "ten"]
    files = three.repository.files(merged.tree or "")
    assert b"<<<<<<< parent\nours\n=======\ntheirs\n>>>>>>> child\n" in files["ten"][1]
    assert files["bytes"][1] == b"\0ours"
    assert files["a.txt"][1] == b"still wanted\n"
    assert files["clean"][1] == b"c\n"


def test_a_file_against_a_folder_loses_neither(three: Three):
    three.repository.write("new", "ours is a file\n")
    (three.theirs.root / "new").mkdir()
    (three.theirs.root / "new" / "inner").write_text("theirs is a folder\n")
    assert three.merge().tree is None
    files = three.repository.files(three.merge(markers=True).tree or "")
    assert {b"ours is a file\n", b"theirs is a folder\n"} <= {data for _, data in files.values()}


@pytest.mark.parametrize("is_ours", [True, False], ids=["ours", "theirs"])
def test_a_folder_that_became_a_file_against_a_new_file_in_it_loses_neither(three: Three, is_ours: bool):
    one, other = three.repository.top, three.theirs.root
    if not is_ours:
        one, other = other, one
    shutil.rmtree(one / "folder")
    (one / "folder").write_text("a file now\n")
    (other / "folder" / "new").write_text("new\n")
    kept = "folder~parent" if is_ours else "folder~child"
    (other / kept).write_text("of an earlier merge\n")
    merged = three.merge()
    assert (merged.tree, [each.path for each in merged.conflicts]) == (None, ["folder"])
    (conflict,) = merged.conflicts
    assert (conflict.ours if is_ours else conflict.theirs) == "a file now\n"
    files = three.repository.files(three.merge(markers=True).tree or "")
    assert files["folder/new"][1] == b"new\n"
    assert files[kept][1] == b"of an earlier merge\n"
    assert files[f"{kept}_0"][1] == b"a file now\n"


@pytest.mark.parametrize("is_ours", [True, False], ids=["ours", "theirs"])
def test_a_folder_that_became_one_of_its_files_against_work_on_that_file_loses_neither(three: Three, is_ours: bool):
    """libgit2 takes the new file for the folder's, renamed, and merges the other side's work into it."""
    three.repository.write("d/z", TEN)
    three.base = three.ours.take("refs/agentmesh/s/a/base").tree
    three.theirs = three.ours.own(three.theirs.store.folder.with_name("second"))
    one, other = three.repository.top, three.theirs.root
    if not is_ours:
        one, other = other, one
    (one / "d" / "z").rename(one / "tmp")
    (one / "d").rmdir()
    (one / "tmp").rename(one / "d")
    (other / "d" / "z").write_text(f"{TEN}hours of work\n")
    (other / "d" / "x").write_text("new\n")
    assert {each.path for each in three.merge().conflicts} == {"d", "d/z"}
    files = three.repository.files(three.merge(markers=True).tree or "")
    assert files["d/z"][1] == f"{TEN}hours of work\n".encode()
    assert files["d/x"][1] == b"new\n"
    assert files["d~parent" if is_ours else "d~child"][1] == TEN.encode()


@pytest.mark.parametrize(("ours", "theirs"), [("", "1\n"), ("1\n", "")])
def test_the_markers_of_an_emptied_file_name_both_sides(three: Three, ours: str, theirs: str):
    three.repository.write("ten", ours)
    (three.theirs.root / "ten").write_text(theirs)
    (conflict,) = three.merge(markers=True).conflicts
    assert conflict.both == f"<<<<<<< parent\n{ours}=======\n{theirs}>>>>>>> child\n"


def test_a_renamed_file_takes_the_other_sides_changes(three: Three):
    (three.repository.top / "ten").rename(three.repository.top / "renamed")
    (three.theirs.root / "ten").write_text(TEN.replace("5\n", "theirs\n"))
    files = three.repository.files(three.merge().tree or "")
    assert files["renamed"][1].decode() == TEN.replace("5\n", "theirs\n")
    assert "ten" not in files


def test_text_that_is_not_utf_8_conflicts_without_markers(three: Three):
    three.repository.write("ten", "ours \xff\n".encode("latin-1"))
    (three.theirs.root / "ten").write_bytes("theirs \xfe\n".encode("latin-1"))
    (conflict,) = three.merge().conflicts
    assert conflict.both == ""
    assert three.repository.files(three.merge(markers=True).tree or "")["ten"][1] == b"ours \xff\n"


def test_one_side_without_changes_gives_the_other(three: Three):
    (three.theirs.root / "a.txt").write_text("2\n")
    merged = three.merge()
    assert merged.tree == three.theirs.head
    assert merge(three.ours.place, three.base, merged.tree or "", three.base).tree == merged.tree


def test_both_sides_with_the_same_change_are_no_conflict(three: Three):
    three.repository.write("ten", "same\n")
    (three.theirs.root / "ten").write_text("same\n")
    assert three.merge().tree == three.ours.head


def test_modes_and_links_are_merged(three: Three):
    (three.repository.top / "ten").chmod(0o755)
    (three.theirs.root / "ten").write_text(TEN + "more\n")
    (three.theirs.root / "link").symlink_to("ten")
    files = three.repository.files(three.merge().tree or "")
    assert files["ten"] == ("100755", f"{TEN}more\n".encode())
    assert files["link"] == ("120000", b"ten")
