from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentmesh.domain.errors import TreeError
from agentmesh.git.blaming import blame
from agentmesh.git.comparing import MOST_TEXT, changed_paths, changes, diff
from tests.git.repositories import Repository, Workspace


def test_a_diff_is_what_git_apply_reads(repository: Repository, workspace: Workspace):
    first = workspace.take("refs/agentmesh/s/a/1").tree
    repository.write("a.txt", "one\n2\nthree\n")
    repository.write("new file", "n")
    repository.write("latin", "caf\xe9\n".encode("latin-1"))
    repository.write("bytes", b"\0\1")
    (repository.top / "folder" / "b.txt").unlink()
    second = workspace.take("refs/agentmesh/s/a/2").tree
    files = diff(workspace.place, first, second)
    assert [(each.path, each.status, each.added, each.removed, each.binary) for each in files] == [
        ("a.txt", "changed", 1, 1, False),
        ("bytes", "added", 0, 0, True),
        ("folder/b.txt", "removed", 0, 1, False),
        ("latin", "added", 1, 0, False),
        ("new file", "added", 1, 0, False),
    ]
    assert "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n" in files[0].text
    assert files[1].text == ""
    repository.git("stash", "-q", "-u")
    repository.git("apply", "-", text=os.fsencode("".join(each.text for each in files)))
    (repository.top / "bytes").write_bytes(b"\0\1")
    assert workspace.take().tree == second


def test_a_diff_of_some_paths(repository: Repository, workspace: Workspace):
    first = workspace.take("refs/agentmesh/s/a/1").tree
    for path in ("a.txt", "folder/b.txt", "folder/c", "folder2"):
        repository.write(path, "2\n")
    second = workspace.take("refs/agentmesh/s/a/2").tree
    place = workspace.place
    assert changed_paths(place, first, second) == {"a.txt", "folder/b.txt", "folder/c", "folder2"}
    assert [each.path for each in diff(place, first, second, paths=["folder"])] == ["folder/b.txt", "folder/c"]
    assert [each.path for each in changes(place, first, second, paths=["./a.txt", "folder/c"])] == ["a.txt", "folder/c"]
    assert diff(place, first, second, paths=["a.txt"], context=0)[0].text.endswith(
        "@@ -1,3 +1 @@\n-one\n-two\n-three\n+2\n"
    )
    assert diff(place, first, first) == []


def test_a_long_diff_is_clipped_at_a_line(repository: Repository, workspace: Workspace):
    first = workspace.take("refs/agentmesh/s/a/1").tree
    repository.write("long", "line\n" * 100_000)
    (found,) = diff(workspace.place, first, workspace.take().tree)
    assert found.clipped
    assert (found.added, len(found.text) <= MOST_TEXT, found.text[-6:]) == (100_000, True, "+line\n")


def test_an_unknown_tree_is_an_error_in_words(workspace: Workspace):
    with pytest.raises(TreeError, match="could not compare"):
        diff(workspace.place, "0" * 40, workspace.take().tree)


def test_lines_are_blamed_on_the_version_that_brought_them(repository: Repository, workspace: Workspace):
    versions: list[tuple[str, str]] = []
    for label, text in (
        ("v0", "a\nb\nc\n"),
        ("v1", "a\nB\nc\nd\n"),
        ("v2", "0\na\nB\nc\nd\n"),
        ("v2 again", "0\na\nB\nc\nd\n"),
        ("v3", "0\na\nc\nd\nend"),
    ):
        repository.write("x", text)
        versions.append((label, workspace.take(f"refs/agentmesh/s/a/{len(versions)}").tree))
    assert [(line.text, line.label) for line in blame(workspace.place, versions, "x")] == [
        ("0", "v2"),
        ("a", None),
        ("c", None),
        ("d", "v1"),
        ("end", "v3"),
    ]
    assert blame(workspace.place, versions, "none") == []
    assert blame(workspace.place, [], "x") == []
    assert blame(workspace.place, [("gone", "1" * 40), *versions], "x")[0].label == "v2"


def test_a_file_that_came_later_is_all_of_its_version(repository: Repository, workspace: Workspace, tmp_path: Path):
    first = workspace.take("refs/agentmesh/s/a/1").tree
    repository.write("x", "a\nb\n")
    second = workspace.take("refs/agentmesh/s/a/2").tree
    assert {line.label for line in blame(workspace.place, [("1", first), ("2", second)], "x")} == {"2"}
