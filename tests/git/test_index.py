"""The index of a workspace: what it lets a look pass over, and what it must not."""

from __future__ import annotations

import os
import time

from tests.git.repositories import Repository, Workspace


def test_files_that_stay_the_same_size_within_a_tick_are_seen(repository: Repository, workspace: Workspace):
    workspace.take()
    for number in range(50):
        repository.write("a.txt", f"{number:03}")
        assert number == 0 or workspace.changed() == {"a.txt": "changed"}
        if number == 0:
            workspace.take()


def test_a_change_that_keeps_the_time_and_the_size_is_seen_by_its_inode(repository: Repository, workspace: Workspace):
    before = (repository.top / "a.txt").stat()
    workspace.take()
    repository.write("a.new", "ONE\nTWO\nTHREE\n").replace(repository.top / "a.txt")
    os.utime(repository.top / "a.txt", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert workspace.changed() == {"a.txt": "changed"}


def test_another_store_goes_on_where_one_ended(repository: Repository, workspace: Workspace):
    workspace.take()
    repository.write("a.txt", "2")
    workspace.take()
    other = Workspace.of(repository.top, workspace.store.folder)
    other.head = workspace.head
    assert other.changed() == {}
    repository.write("b", "1")
    assert other.changed() == {"b": "added"}
    workspace.head = other.head
    assert workspace.changed() == {}


def test_a_damaged_index_of_ours_is_made_again(repository: Repository, workspace: Workspace):
    workspace.take()
    (workspace.store.folder / "view" / "index").write_bytes(b"DIRC rubbish")
    (workspace.store.folder / "view" / "index.lock").write_bytes(b"")
    other = Workspace.of(repository.top, workspace.store.folder)
    other.head = workspace.head
    repository.write("a.txt", "2")
    assert other.changed() == {"a.txt": "changed"}


def test_the_first_look_reads_no_file_that_git_knows(repository: Repository, workspace: Workspace):
    past = time.time() - 1000
    os.utime(repository.top / "a.txt", (past, past))
    repository.git("update-index", "--refresh")
    digest = repository.git("rev-parse", "HEAD:a.txt").strip()
    (repository.top / ".git" / "objects" / digest[:2] / digest[2:]).chmod(0o600)
    stat = (repository.top / "a.txt").stat()
    workspace.take()
    assert (repository.top / "a.txt").stat().st_atime_ns == stat.st_atime_ns
