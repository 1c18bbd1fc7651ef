"""Files that only their owner may read stay so, whoever takes them back."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.git.repositories import Repository, Workspace


@pytest.fixture(autouse=True)
def _usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def back(workspace: Workspace, tree: str) -> None:
    """Take the files back to a tree from what they are now."""
    head = workspace.take().tree
    assert workspace.store.restore(tree, head).refused == ()
    workspace.take()


@pytest.mark.parametrize("is_tracked", [True, False], ids=["tracked", "new"])
def test_a_private_file_that_comes_back_is_private(repository: Repository, tmp_path: Path, is_tracked: bool):
    workspace = Workspace.of(repository.top, tmp_path / "trees" / "w")
    if not is_tracked:
        workspace.take()
    key = repository.write("id_rsa", "secret\n")
    key.chmod(0o600)
    if is_tracked:
        repository.commit()
    first = workspace.take().tree
    key.unlink()
    (repository.top / "a.txt").unlink()
    back(workspace, first)
    assert (key.read_text(), mode(key)) == ("secret\n", 0o600)
    assert mode(repository.top / "a.txt") == 0o644


def test_a_program_and_a_file_for_the_group_keep_what_they_allow(repository: Repository, workspace: Workspace):
    workspace.take()
    for name, allowed in (("tool", 0o700), ("shared", 0o640)):
        repository.write(name, name).chmod(allowed)
    first = workspace.take(paths=["tool", "shared"]).tree
    for name in ("tool", "shared"):
        (repository.top / name).unlink()
    back(workspace, first)
    assert (mode(repository.top / "tool"), mode(repository.top / "shared")) == (0o700, 0o640)


def test_a_private_file_that_was_made_anew_for_all_is_private_again(repository: Repository, workspace: Workspace):
    key = repository.write("id_rsa", "secret\n")
    key.chmod(0o600)
    first = workspace.take().tree
    key.unlink()
    key.write_text("public\n")
    second = workspace.take().tree
    back(workspace, first)
    assert mode(key) == 0o600
    key.unlink()
    back(workspace, second)
    assert mode(key) == 0o644


def test_a_workspace_without_notes_gets_them_at_its_next_look_at_all_files(repository: Repository, tmp_path: Path):
    key = repository.write("id_rsa", "secret\n")
    key.chmod(0o600)
    repository.commit()
    workspace = Workspace.of(repository.top, tmp_path / "trees" / "w")
    first = workspace.take().tree
    (workspace.store.folder / "view" / "private.json").unlink()
    again = Workspace.of(repository.top, tmp_path / "trees" / "w")
    again.head = first
    repository.write("a.txt", "2\n")
    again.take(paths=["a.txt"])
    again.take()
    key.unlink()
    back(again, first)
    assert mode(key) == 0o600


def test_notes_that_cannot_be_read_hinder_nothing(repository: Repository, workspace: Workspace):
    first = workspace.take().tree
    (workspace.store.folder / "view" / "private.json").write_text("{")
    (repository.top / "a.txt").unlink()
    back(workspace, first)
    assert mode(repository.top / "a.txt") == 0o644


@pytest.mark.parametrize("damage", ["[]", '{"new": []}', '{"new": {"1": "x"}}', '{"new": {"1": 512}}', "{"])
def test_damaged_notes_are_begun_anew(repository: Repository, workspace: Workspace, damage: str):
    first = workspace.take().tree
    (workspace.store.folder / "view" / "private.json").write_text(damage)
    repository.write("new", "secret\n").chmod(0o600)
    second = workspace.take().tree
    workspace.store.restore(first, second)
    workspace.store.restore(second, first)
    assert (repository.top / "new").stat().st_mode & 0o777 == 0o600
