"""Processes that die in the middle, disks that are full, and several at once."""

from __future__ import annotations

import functools
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from agentmesh.domain.errors import DatabaseUnreachable, TreeBusy, TreeError
from agentmesh.git.lock import locked
from agentmesh.git.store import Store
from agentmesh.git.trees import is_made, remove_tree
from agentmesh.git.unfinished import NOTE
from tests.git.repositories import Repository, Workspace, on_disk

CHANGES = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "shutil.copyfile", "os.truncate"}
MOST = 400
Files = dict[str, tuple[int, bytes]]


def child(work: Callable[[], object]) -> int:
    """Run work in a forked process; return its wait status: 0 if it was done."""
    return os.waitpid(started(work), 0)[1]


def started(work: Callable[[], object]) -> int:
    """Run work in a forked process; return its id."""
    pid = os.fork()
    if pid == 0:
        code = 1
        with suppress(Exception):
            work()
            code = 0
        os._exit(code)
    return pid


def die_at(count: int, work: Callable[[], object]) -> bool:
    """Run work in a process that is killed before its ``count``-th change of a file; return whether it got so far."""

    def killed() -> None:
        left = count

        def watch(event: str, _: object) -> None:
            nonlocal left
            if event in CHANGES:
                left -= 1
                if left <= 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        work()

    status = child(killed)
    assert status in (0, signal.SIGKILL)
    return status != 0


def moments(work: Callable[[], object], check: Callable[[], None]) -> int:
    """Kill work at one moment after another until it gets to its end; check after each death."""
    count = 1
    while die_at(count, work):
        check()
        count += 1 + count // 6
        assert count < MOST, "the work has too many moments"
    return count


def two_snapshots(repository: Repository, workspace: Workspace) -> tuple[str, str, Files, Files]:
    """Take snapshots before and after changes of many kinds; return their trees, and what was on disk then."""
    repository.write("file-to-folder", "f\n")
    repository.write("goes", "g\n")
    first = workspace.take("refs/agentmesh/s/a/1").tree
    earlier = on_disk(repository.top)
    (repository.top / "file-to-folder").unlink()
    (repository.top / "goes").unlink()
    for path in ("file-to-folder/inner", "new", "a.txt", "folder/b.txt"):
        repository.write(path, "changed\n")
    second = workspace.take("refs/agentmesh/s/a/2").tree
    return first, second, earlier, on_disk(repository.top)


@pytest.mark.slow
def test_a_restore_killed_at_any_moment_is_finished_by_the_next(repository: Repository, workspace: Workspace):
    first, second, earlier, later = two_snapshots(repository, workspace)

    def check() -> None:
        whole = {(path, data) for files in (earlier, later) for path, data in files.items()}
        assert {
            each for each in on_disk(repository.top).items() if not each[0].rpartition("/")[2].startswith(".agentmesh-")
        } <= whole
        assert again.store.restore(first, second).refused == ()
        assert on_disk(repository.top) == earlier
        assert again.store.restore(second, first).refused == ()
        assert on_disk(repository.top) == later

    again = Workspace.of(repository.top, workspace.store.folder)
    assert moments(lambda: workspace.store.restore(first, second), check) > 10


@pytest.mark.slow
def test_a_way_back_killed_at_any_moment_is_taken_back_by_the_next_call(repository: Repository, workspace: Workspace):
    first, second, earlier, later = two_snapshots(repository, workspace)

    def back() -> None:
        with workspace.store.going_back("refs/agentmesh/s/a/3", first, second) as restored:
            assert restored.refused == ()

    def check() -> None:
        die_at(4, again.store.settle)
        assert again.take().tree == second
        assert on_disk(repository.top) == later
        assert "refs/agentmesh/s/a/3" not in again.store.refs("refs/agentmesh/s/")

    again = Workspace.of(repository.top, workspace.store.folder)
    again.head = second
    assert moments(back, check) > 10
    assert on_disk(repository.top) == earlier


def test_what_somebody_changed_after_a_way_back_was_cut_short_stays(repository: Repository, workspace: Workspace):
    first, second, _, later = two_snapshots(repository, workspace)

    def back() -> None:
        with workspace.store.going_back("refs/agentmesh/s/a/3", first, second):
            os.kill(os.getpid(), signal.SIGKILL)

    assert child(back) == signal.SIGKILL
    repository.write("a.txt", "mine\n")
    repository.write("new", "mine too\n")
    (repository.top / "folder/b.txt").unlink()
    again = Workspace.of(repository.top, workspace.store.folder)
    again.head = second
    assert again.changed() == {"a.txt": "changed", "new": "changed", "folder/b.txt": "removed"}
    mine = {"a.txt": b"mine\n", "new": b"mine too\n"}
    contents = {path: data for path, (_, data) in on_disk(repository.top).items()}
    assert contents == {path: data for path, (_, data) in later.items() if path != "folder/b.txt"} | mine


@pytest.mark.parametrize("stored", [False, True])
def test_a_way_back_whose_row_cannot_be_stored_is_taken_back_at_once(
    repository: Repository, workspace: Workspace, *, stored: bool
):
    first, second, earlier, later = two_snapshots(repository, workspace)
    store = Store(workspace.place, workspace.store.folder, is_stored=lambda _ref: stored)
    with pytest.raises(TreeBusy, match="the row"), store.going_back("refs/agentmesh/s/a/3", first, second):
        raise TreeBusy("the row")
    assert on_disk(repository.top) == (earlier if stored else later)
    assert ("refs/agentmesh/s/a/3" in store.refs("refs/agentmesh/s/")) is stored
    assert not (store.folder / NOTE).exists()


def test_a_way_back_of_which_nobody_can_say_whether_its_row_is_stored_is_left_to_the_next_call(
    repository: Repository, workspace: Workspace
):
    first, second, earlier, later = two_snapshots(repository, workspace)

    def is_stored(_ref: str) -> bool:
        raise DatabaseUnreachable("away")

    store = Store(workspace.place, workspace.store.folder, is_stored=is_stored)
    with pytest.raises(TreeBusy, match="the row"), store.going_back("refs/agentmesh/s/a/3", first, second):
        raise TreeBusy("the row")
    assert on_disk(repository.top) == earlier
    with pytest.raises(DatabaseUnreachable):
        store.take(second, None)
    Workspace.of(repository.top, store.folder).take()
    assert on_disk(repository.top) == later


@pytest.mark.parametrize(
    "note",
    [
        b"",
        b"\xff",
        b"[",
        b"7",
        b"[]",
        b'{"ref": 1, "tree": 2, "expected": 3}',
        b'["r", "t", "e"]',
        b'["r", 1, 2]',
        b'["", "{tree}", "{tree}"]',
        b'["refs/heads/main", "{tree}", "{tree}"]',
        b'["refs/agentmesh/s/../3", "{tree}", "{tree}"]',
        b'["refs/agentmesh/s/a/3", "{tree}", ["{tree}"]]',
        b'["refs/agentmesh/s/a/3", "{tree}", "{tree}", "more"]',
    ],
)
def test_a_note_of_a_way_back_that_nobody_can_read_is_removed_and_hinders_nobody(
    repository: Repository, workspace: Workspace, caplog: pytest.LogCaptureFixture, note: bytes
):
    tree = workspace.take().tree
    written = workspace.store.folder / NOTE
    written.write_bytes(note.replace(b"{tree}", tree.encode()))
    branch = repository.git("rev-parse", "HEAD")
    assert workspace.take().tree == tree
    assert not written.exists()
    assert repository.git("rev-parse", "refs/heads/main") == branch
    assert "cannot be read" in caplog.text


def test_what_somebody_wrote_in_the_place_of_a_folder_leaves_only_that_undone(
    repository: Repository, workspace: Workspace
):
    first, second, _, later = two_snapshots(repository, workspace)

    def back() -> None:
        with workspace.store.going_back("refs/agentmesh/s/a/3", first, second):
            os.kill(os.getpid(), signal.SIGKILL)

    assert child(back) == signal.SIGKILL
    mine = repository.write("file-to-folder", "mine\n")
    again = Workspace.of(repository.top, workspace.store.folder)
    again.head = second
    assert again.changed() == {"file-to-folder": "added", "file-to-folder/inner": "removed"}
    contents = {path: data for path, (_, data) in on_disk(repository.top).items() if path != mine.name}
    assert contents == {path: data for path, (_, data) in later.items() if path != "file-to-folder/inner"}
    assert mine.read_text() == "mine\n"


def test_a_file_that_changes_during_a_restore_leaves_the_others_as_they_were(
    repository: Repository, workspace: Workspace
):
    first, second, _, later = two_snapshots(repository, workspace)

    def changed_meanwhile() -> None:
        def watch(event: str, arguments: tuple[object, ...]) -> None:
            if event == "os.rename" and arguments[1] == "b.txt":
                repository.write("goes", "mine\n")  # its turn comes after that of folder/b.txt

        sys.addaudithook(watch)
        assert workspace.store.restore(first, second).refused == ("goes",)

    assert child(changed_meanwhile) == 0
    contents = {path: data for path, (_, data) in on_disk(repository.top).items()}
    assert contents == {path: data for path, (_, data) in later.items()} | {"goes": b"mine\n"}


@pytest.mark.slow
def test_a_tree_whose_making_was_killed_is_made_by_the_next(
    repository: Repository, workspace: Workspace, tmp_path: Path
):
    repository.write(".gitignore", "data/\n")
    repository.write("data/x", "x")
    workspace.take()
    trees = tmp_path / "trees"

    def check() -> None:
        made = workspace.own(trees / "own", copy=("data",))
        assert set(on_disk(made.root)) == {".gitignore", "a.txt", "data/x", "folder/b.txt"}
        assert made.changed() == {}
        assert remove_tree(trees / "own", "own", trees)

    assert moments(lambda: workspace.own(trees / "own", copy=("data",)), check) > 10
    assert is_made(trees / "own", "own")


@pytest.mark.slow
def test_a_removal_that_was_killed_is_finished_by_the_next(workspace: Workspace, tmp_path: Path):
    trees = tmp_path / "trees"
    workspace.take()

    def check() -> None:
        assert remove_tree(trees / "own", "own", trees)
        assert not (trees / "own").exists()
        workspace.own(trees / "own")

    workspace.own(trees / "own")
    assert moments(lambda: remove_tree(trees / "own", "own", trees), check) > 3


@pytest.mark.slow
def test_a_snapshot_that_was_killed_is_taken_by_the_next(repository: Repository, tmp_path: Path):
    folder = tmp_path / "trees" / "w"
    repository.write("new", "n\n")
    repository.git("add", "-A")
    tree = repository.git("write-tree").strip()

    def check() -> None:
        workspace = Workspace.of(repository.top, folder)
        assert workspace.take().tree == tree
        (folder / "view" / "index").unlink()

    moments(lambda: Workspace.of(repository.top, folder).take(), check)


def test_locks_that_a_dead_process_left_hinder_nobody(repository: Repository, workspace: Workspace):
    workspace.take("refs/agentmesh/s/a/1")
    lock = repository.top / ".git" / "refs" / "agentmesh" / "s" / "a" / "1.lock"
    lock.write_text("")
    os.utime(lock, (0, 0))
    (workspace.store.folder / "view" / "index.lock").write_text("")
    again = Workspace.of(repository.top, workspace.store.folder)
    again.take("refs/agentmesh/s/a/1")
    assert not lock.exists()


def test_a_ref_that_git_holds_is_said(repository: Repository, workspace: Workspace):
    workspace.take("refs/agentmesh/s/a/1")
    (repository.top / ".git" / "refs" / "agentmesh" / "s" / "a" / "1.lock").write_text("")
    with pytest.raises(TreeBusy, match="locked by another program"):
        workspace.take("refs/agentmesh/s/a/1")


def test_a_workspace_that_somebody_holds_is_said(tmp_path: Path):
    with (
        locked(tmp_path / "w"),
        pytest.raises(TreeBusy, match="has worked with the files"),
        locked(tmp_path / "w", patience=0),
    ):
        pass
    with locked(tmp_path / "w", patience=0):
        pass


@pytest.mark.slow
def test_two_processes_take_snapshots_at_once(repository: Repository, workspace: Workspace):
    start = workspace.take("refs/agentmesh/s/a/0").tree

    def many(name: str) -> None:
        mine = Workspace.of(repository.top, workspace.store.folder)
        mine.head = start
        for number in range(15):
            repository.write(f"{name}/{number}", f"{name} {number}\n")
            mine.take(f"refs/agentmesh/s/{name}/{number}", None if number % 2 else [f"{name}/{number}"])

    pids = [started(functools.partial(many, name)) for name in ("x", "y")]
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0]
    tree = workspace.take().tree
    assert {f"{name}/{number}" for name in "xy" for number in range(15)} <= set(repository.files(tree))
    assert repository.git("fsck", "--strict", "--no-dangling") == ""
    assert len(workspace.store.refs("refs/agentmesh/s/x/")) == 15


@pytest.mark.slow
def test_files_that_come_and_go_during_a_snapshot(repository: Repository, workspace: Workspace):
    workspace.take()
    over = threading.Event()

    def busy() -> None:
        number = 0
        while not over.is_set():
            number += 1
            repository.write(f"busy/{number % 7}/{number % 50}", f"{number}\n" * (number % 999))
            (repository.top / "busy" / f"{number * 3 % 7}" / f"{number * 3 % 50}").unlink(missing_ok=True)

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(40):
            workspace.take()
    finally:
        over.set()
        thread.join()
    tree = workspace.take().tree
    repository.git("add", "-A")
    assert tree == repository.git("write-tree").strip()


def small(limit: int, work: Callable[[], object]) -> int:
    """Run work in a process whose files may not grow beyond a limit, as on a full disk."""

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        with pytest.raises(TreeError, match="no space is left"):
            work()
        os._exit(7)

    return os.waitstatus_to_exitcode(child(limited))


def test_a_full_disk_is_said_and_breaks_nothing(repository: Repository, workspace: Workspace, tmp_path: Path):
    first = workspace.take("refs/agentmesh/s/a/1").tree
    large = os.urandom(200_000)
    repository.write("large", large)
    assert small(50_000, lambda: workspace.take("refs/agentmesh/s/a/2")) == 7
    assert workspace.store.refs("refs/agentmesh/") == {"refs/agentmesh/s/a/1": first}
    second = workspace.take("refs/agentmesh/s/a/2").tree
    repository.write("a.txt", "2\n")
    (repository.top / "large").unlink()
    third = workspace.take("refs/agentmesh/s/a/3").tree
    before = on_disk(repository.top)
    assert small(50_000, lambda: workspace.store.restore(second, third)) == 7
    assert on_disk(repository.top) == before
    workspace.head = second
    trees = tmp_path / "trees"
    assert small(50_000, lambda: workspace.own(trees / "own")) == 7
    assert not is_made(trees / "own", "own")
    assert (workspace.own(trees / "own").root / "large").read_bytes() == large
    assert workspace.store.restore(second, third).refused == ()
    assert repository.git("fsck", "--strict") == ""
