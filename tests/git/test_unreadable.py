"""Files and folders that nobody may read: they are left out and named, never taken for removed, and hide no other."""

from __future__ import annotations

import errno
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agentmesh.git import looking
from tests.git.powerless import powerless
from tests.git.repositories import Repository, Workspace


@pytest.mark.parametrize("mode", [0o644, 0o000], ids=["not entered", "not listed"])
@pytest.mark.parametrize("paths", [None, ["folder/b.txt"]], ids=["all", "named"])
def test_files_in_a_closed_folder_are_not_removed(
    repository: Repository, workspace: Workspace, mode: int, paths: list[str] | None
):
    repository.write("folder/b.txt", "uncommitted\n")
    repository.write("folder/deep/c", "c\n")
    repository.write("folder/new", "new\n")
    before = workspace.take().tree
    repository.write("made", "made\n")
    (repository.top / "folder").chmod(mode)
    try:
        with powerless():
            taken = workspace.take(paths=paths)
    finally:
        (repository.top / "folder").chmod(0o755)
    assert [(each.path, each.status) for each in taken.changes] == [("made", "added")]
    assert {"folder/b.txt", "folder/deep/c", "folder/new"} <= set(taken.left_out)
    repository.write("folder/b.txt", "later\n")
    workspace.head = before
    assert workspace.changed() == {"made": "added", "folder/b.txt": "changed"}


def test_a_file_that_cannot_be_read_hides_no_change_of_another(repository: Repository, workspace: Workspace):
    before = workspace.take().tree
    repository.write("made", "made\n")
    (repository.top / "a.txt").chmod(0o000)
    with powerless():
        for _ in range(2):
            taken = workspace.take()
            assert taken.left_out == ("a.txt",)
            assert "a.txt" in repository.files(taken.tree)
        assert workspace.store.restore(before, taken.tree).written == ("made",)
        assert not (repository.top / "made").exists()
    (repository.top / "a.txt").chmod(0o644)
    repository.write("a.txt", "changed\n")
    workspace.head = before
    assert workspace.changed() == {"a.txt": "changed"}


def test_a_link_to_itself_in_a_folder_s_place_takes_its_files_away(repository: Repository, workspace: Workspace):
    workspace.take()
    (repository.top / "folder" / "b.txt").unlink()
    (repository.top / "folder").rmdir()
    (repository.top / "folder").symlink_to("folder")
    assert workspace.changed() == {"folder": "added", "folder/b.txt": "removed"}


def test_a_socket_in_a_file_s_place_is_not_taken_for_unreadable(repository: Repository, workspace: Workspace):
    workspace.take()
    (repository.top / "folder" / "b.txt").unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(repository.top / "folder" / "b.txt"))
    repository.write("a.txt", "changed\n").chmod(0o000)
    with powerless():
        taken = workspace.take()
    assert ([(each.path, each.status) for each in taken.changes], taken.left_out) == (
        [("folder/b.txt", "removed")],
        ("a.txt",),
    )


def test_a_file_is_not_unreadable_because_no_descriptor_is_left(repository: Repository):
    with _no_descriptors(), pytest.raises(OSError, match=os.strerror(errno.EMFILE)):
        looking._is_readable(repository.top / "a.txt")
    assert looking._is_readable(repository.top / "a.txt")
    assert looking._is_readable(repository.top / "gone")


@contextmanager
def _no_descriptors() -> Iterator[None]:
    """Let this process open nothing more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
