"""Files whose ends of lines Git would convert: a restore brings back the bytes that were there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.git.repositories import Repository, Workspace, on_disk

LF, CRLF, MIXED, BINARY = b"a\nb\n", b"a\r\nb\r\n", b"a\r\nb\n", b"\0\1\r\n\2"


@pytest.mark.parametrize("paths", [None, ["new"]], ids=["all", "named"])
@pytest.mark.parametrize("safe", ["true", "false"])
@pytest.mark.parametrize(
    ("ends", "rules", "data"),
    [
        ("true", "", LF),
        ("true", "", MIXED),
        ("input", "", CRLF),
        ("false", "* text\n", BINARY),
        ("false", "* text=auto\n", MIXED),
        ("false", "* text eol=crlf\n", LF),
    ],
)
def test_bytes_that_git_would_convert_come_back(
    repository: Repository, workspace: Workspace, ends: str, safe: str, rules: str, data: bytes, paths: list[str] | None
):
    repository.git("config", "core.autocrlf", ends)
    repository.git("config", "core.safecrlf", safe)
    repository.write(".gitattributes", rules)
    first = workspace.take().tree
    states = [(first, on_disk(repository.top))]
    for text in (data, data + b"more", None, data):
        if text is None:
            (repository.top / "new").unlink()
        else:
            repository.write("new", text)
        states.append((workspace.take(paths=paths).tree, on_disk(repository.top)))
    now = workspace.head or ""
    for tree, files in (*reversed(states), *states):
        assert workspace.store.restore(tree, now).refused == ()
        assert on_disk(repository.top) == files
        assert workspace.changed() == {} or tree != now
        now = workspace.head = tree


def test_a_file_with_other_ends_than_git_s_keeps_them_when_a_merge_changes_it(
    repository: Repository, workspace: Workspace, tmp_path: Path
):
    repository.git("config", "core.autocrlf", "true")
    repository.write("run.sh", "#!/bin/sh\n")
    before = workspace.take().tree
    child = workspace.own(tmp_path / "trees" / "own")
    with (child.root / "run.sh").open("a") as script:
        script.write("true\n")
    assert workspace.store.restore(child.take().tree, before).written == ("run.sh",)
    assert (repository.top / "run.sh").read_bytes() == b"#!/bin/sh\ntrue\n"


def test_contents_that_no_path_remembers_are_removed(repository: Repository, workspace: Workspace):
    repository.git("config", "core.autocrlf", "true")
    for count in range(103):
        repository.write("new", b"a\n" * (count + 1))
        workspace.take(paths=["new"] if count else None)
    assert len(list((workspace.store.folder / "view" / "bytes").iterdir())) == 100


@pytest.mark.parametrize("damage", ["[]", '{"new": []}', '{"new": {"1": 1}}', '{"new": {"1', "\xff", '"new"', "null"])
def test_damaged_notes_are_begun_anew(repository: Repository, workspace: Workspace, damage: str):
    repository.git("config", "core.autocrlf", "true")
    first = workspace.take().tree
    repository.write("new", LF)
    workspace.take()
    (workspace.store.folder / "view" / "bytes.json").write_bytes(damage.encode("latin-1"))
    repository.write("new", LF + LF)
    second = workspace.take().tree
    workspace.store.restore(first, second)
    workspace.store.restore(second, first)
    assert (repository.top / "new").read_bytes() == LF + LF


def test_names_that_differ_in_case_are_two_files_though_the_settings_are_another_disk_s(
    repository: Repository, workspace: Workspace
):
    repository.write("README", "1\n")
    repository.write("readme", "2\n")
    if len(list(repository.top.glob("[Rr]*"))) < 2:
        pytest.skip("the disk has one file of them")
    repository.git("config", "core.ignorecase", "true")
    before, files = workspace.take().tree, on_disk(repository.top)
    repository.write("README", "changed\n")
    assert workspace.changed() == {"README": "changed"}
    for name in ("README", "readme"):
        (repository.top / name).unlink()
    assert workspace.changed() == {"README": "removed", "readme": "removed"}
    assert workspace.store.restore(before, workspace.head or "").written == ("README", "readme")
    assert on_disk(repository.top) == files
