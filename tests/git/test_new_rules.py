"""Restores that bring other rules for the bytes of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.git.repositories import Repository, Workspace, on_disk
from tests.git.test_crashes import moments

RULES = "*.sh text eol=lf\n*.dat -text\n"
BYTES = b"\1\n\2\n\3\r\n"


@pytest.fixture
def own(repository: Repository, tmp_path: Path, crlf: str) -> tuple[Workspace, Workspace]:
    """A workspace whose files have CR LF on disk, and a tree of its own that has brought other rules."""
    if crlf == "core.autocrlf":
        repository.git("config", "core.autocrlf", "true")
    else:
        repository.write(".gitattributes", "* text=auto eol=crlf\r\n")
    repository.write("run.sh", "old\r\nlines\r\n")
    repository.write("plain.txt", "old\r\n")
    repository.commit()
    workspace = Workspace.of(repository.top, tmp_path / "trees" / "w")
    workspace.take()
    made = workspace.own(tmp_path / "trees" / "own")
    before = made.root / ".gitattributes"
    before.write_text((before.read_text() if before.exists() else "") + RULES)
    for path, data in (("run.sh", b"#!/bin/sh\necho\n"), ("q.dat", BYTES), ("plain.txt", b"new\r\n"), ("n.sh", b"n\n")):
        (made.root / path).write_bytes(data)
    made.take("refs/agentmesh/s/a/2")
    return workspace, made


@pytest.mark.parametrize("crlf", ["core.autocrlf", "eol"])
def test_rules_that_come_with_files_count_for_them(own: tuple[Workspace, Workspace], repository: Repository):
    workspace, made = own
    first = workspace.head or ""
    earlier = on_disk(repository.top)
    assert workspace.store.restore(made.head or "", first).refused == ()
    assert (repository.top / "run.sh").read_bytes() == b"#!/bin/sh\necho\n"
    assert (repository.top / "n.sh").read_bytes() == b"n\n"
    assert (repository.top / "q.dat").read_bytes() == BYTES
    assert (repository.top / "plain.txt").read_bytes() == b"new\r\n"
    assert workspace.take().tree == made.head
    assert workspace.store.restore(first, made.head or "").refused == ()
    assert on_disk(repository.top) == earlier
    assert workspace.take().tree == first


@pytest.mark.parametrize("crlf", ["eol"])
def test_a_file_that_somebody_has_changed_refuses_rules_too(own: tuple[Workspace, Workspace], repository: Repository):
    workspace, made = own
    (repository.top / "run.sh").write_bytes(b"mine\r\n")
    before = on_disk(repository.top)
    assert workspace.store.restore(made.head or "", workspace.head or "").refused == ("run.sh",)
    assert on_disk(repository.top) == before
    assert not (workspace.store.folder / "rules").exists()


@pytest.mark.parametrize("crlf", ["core.autocrlf", "eol"])
def test_rules_in_a_folder_that_comes(own: tuple[Workspace, Workspace], repository: Repository):
    workspace, made = own
    (made.root / "deep").mkdir()
    (made.root / "deep" / ".gitattributes").write_text("*.txt -text\n")
    (made.root / "deep" / "t.txt").write_bytes(BYTES)
    after = made.take("refs/agentmesh/s/a/3").tree
    workspace.store.restore(after, workspace.head or "")
    assert (repository.top / "deep" / "t.txt").read_bytes() == BYTES
    assert workspace.take().tree == after


@pytest.mark.slow
@pytest.mark.parametrize("crlf", ["core.autocrlf"])
def test_new_rules_whose_writer_dies_are_finished(own: tuple[Workspace, Workspace], repository: Repository):
    workspace, made = own
    first, second = workspace.head or "", made.head or ""

    def check() -> None:
        assert workspace.store.restore(second, first).refused == ()
        assert (repository.top / "run.sh").read_bytes() == b"#!/bin/sh\necho\n"
        assert (repository.top / "q.dat").read_bytes() == BYTES
        assert workspace.store.restore(first, second).refused == ()
        assert (repository.top / "run.sh").read_bytes() == b"old\r\nlines\r\n"

    assert moments(lambda: workspace.store.restore(second, first), check) > 5
