"""Files whose ends of lines Git would convert: a restore brings back the bytes that were there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentmesh.git import disk_bytes
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


@pytest.mark.parametrize(
    ("settings", "rules"),
    [
        ({"core.autocrlf": "true"}, ""),
        ({"core.eol": "crlf"}, "* text\n"),
        ({}, "*.sh text eol=crlf\n* text=auto\n"),
        ({"core.autocrlf": "true"}, "* eol=lf\n"),
        ({"core.autocrlf": "true"}, "* crlf=input\n"),
        ({"core.autocrlf": "true"}, "* ident\n"),
    ],
)
def test_committed_files_that_an_agent_removes_have_the_same_bytes_after_undo(
    repository: Repository, tmp_path: Path, settings: dict[str, str], rules: str
):
    repository.write(".gitattributes", rules)
    for name, data in {"lf": LF, "crlf": CRLF, "mixed": MIXED, "binary": BINARY, "id": b"$Id$\r\n", "no": b"a"}.items():
        repository.write(f"{name}.sh", data)
    for key, value in settings.items():
        repository.git("config", key, value)
    repository.commit()
    workspace = Workspace.of(repository.top, tmp_path / "trees" / "w")
    first, files = workspace.take().tree, on_disk(repository.top)
    for script in repository.top.glob("*.sh"):
        script.unlink()
    assert set(workspace.store.restore(first, workspace.take().tree).written) == {n for n in files if n.endswith(".sh")}
    assert on_disk(repository.top) == files


def test_the_bytes_that_were_kept_first_are_removed_beyond_a_number_and_a_size(
    repository: Repository, workspace: Workspace
):
    repository.git("config", "core.autocrlf", "true")
    states: list[tuple[str, dict[str, tuple[int, bytes]]]] = []
    for count in range(1, 9):
        repository.write("new", b"a\n" * count)
        states.append((workspace.take(paths=["new"] if states else None).tree, on_disk(repository.top)))
        view = workspace.store.folder / "view"
        for file in (view / "bytes").iterdir():
            os.utime(file, ns=(time := file.stat().st_mtime_ns - 10**9, time))
    disk_bytes.prune(view, most_files=4)
    assert sorted(file.stat().st_size for file in (view / "bytes").iterdir()) == [10, 12, 14, 16]
    disk_bytes.prune(view, most_bytes=31)
    assert sorted(file.stat().st_size for file in (view / "bytes").iterdir()) == [14, 16]
    (tree, files), now = states[-2], states[-1][0]
    workspace.store.restore(tree, now)
    assert on_disk(repository.top) == files


def test_bytes_that_come_back_by_themselves_take_the_place_of_kept_ones(repository: Repository, workspace: Workspace):
    first = workspace.take().tree
    repository.git("config", "core.autocrlf", "true")
    for data in (LF, CRLF):
        repository.write("new", data)
        second = workspace.take().tree
    workspace.store.restore(first, second)
    workspace.store.restore(second, first)
    assert (repository.top / "new").read_bytes() == CRLF
    assert not list((workspace.store.folder / "view" / "bytes").iterdir())


@pytest.mark.parametrize("damage", [b"", b"other\n", None])
def test_kept_bytes_that_are_damaged_are_not_written(
    repository: Repository, workspace: Workspace, damage: bytes | None
):
    first = workspace.take().tree
    repository.git("config", "core.autocrlf", "true")
    repository.write("new", LF)
    second = workspace.take().tree
    (kept,) = (workspace.store.folder / "view" / "bytes").iterdir()
    kept.unlink()
    if damage is None:
        kept.mkdir()
    else:
        kept.write_bytes(damage)
    workspace.store.restore(first, second)
    workspace.store.restore(second, first)
    assert (repository.top / "new").read_bytes() == CRLF


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
