from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from agentmesh.domain.errors import TreeError
from tests.git.powerless import GIVES_AWAY, member_of, powerless
from tests.git.repositories import Repository, Workspace, on_disk


def two(repository: Repository, workspace: Workspace) -> tuple[str, str]:
    """Take a snapshot, change something of every kind, and take another."""
    repository.write("goes", "g\n")
    repository.write("deep/down/goes", "g\n")
    repository.write("file-to-folder", "f\n")
    repository.write("folder-to-file/inner", "i\n")
    repository.write("program", "p\n", program=True)
    (repository.top / "link").symlink_to("a.txt")
    first = workspace.take("refs/agentmesh/s/a/1").tree
    for path in ("goes", "deep/down/goes", "file-to-folder", "folder-to-file/inner", "link"):
        (repository.top / path).unlink()
    (repository.top / "deep" / "down").rmdir()
    (repository.top / "deep").rmdir()
    (repository.top / "folder-to-file").rmdir()
    repository.write("a.txt", "changed\n")
    repository.write("file-to-folder/inner", "i\n")
    repository.write("folder-to-file", "f\n")
    repository.write("comes/deep/new", "n\n")
    repository.write("link", "no link\n")
    (repository.top / "program").chmod(0o644)
    return first, workspace.take("refs/agentmesh/s/a/2").tree


def test_all_files_are_as_they_were_and_back_again(repository: Repository, workspace: Workspace):
    first, second = two(repository, workspace)
    later = on_disk(repository.top)
    assert workspace.store.restore(first, second).refused == ()
    earlier = on_disk(repository.top)
    assert workspace.take().tree == first
    assert not (repository.top / "comes").exists()
    assert (repository.top / "link").readlink() == Path("a.txt")
    assert workspace.store.restore(second, first).refused == ()
    assert on_disk(repository.top) == later
    assert workspace.take().tree == second
    workspace.store.restore(first, second)
    assert on_disk(repository.top) == earlier


def test_only_the_named_files_and_folders_are_restored(repository: Repository, workspace: Workspace):
    first, second = two(repository, workspace)
    done = workspace.store.restore(first, second, ["a.txt", "deep"])
    assert done.written == ("a.txt", "deep/down/goes")
    assert (repository.top / "comes" / "deep" / "new").exists()


def test_a_file_that_somebody_else_changed_refuses_all_of_it(repository: Repository, workspace: Workspace):
    first, second = two(repository, workspace)
    repository.write("comes/deep/new", "mine\n")
    before = on_disk(repository.top)
    done = workspace.store.restore(first, second)
    assert (done.written, done.refused) == ((), ("comes/deep/new",))
    assert on_disk(repository.top) == before
    assert workspace.store.restore(first, second, ["a.txt"]).written == ("a.txt",)


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ("goes", "goes"),
        ("deep/down", "deep/down/goes"),
        ("deep", "deep/down/goes"),
        ("file-to-folder/mine", "file-to-folder"),
        ("link", "link"),
    ],
)
def test_a_new_file_in_the_way_is_never_lost(repository: Repository, workspace: Workspace, path: str, refused: str):
    first, second = two(repository, workspace)
    repository.write(path, "mine\n")
    assert refused in workspace.store.restore(first, second).refused
    assert (repository.top / path).read_text() == "mine\n"


def test_an_ignored_file_in_a_folder_that_should_go_keeps_the_folder(repository: Repository, workspace: Workspace):
    repository.write(".gitignore", "*.log\n")
    first, second = two(repository, workspace)
    repository.write("comes/deep/kept.log", "mine\n")
    assert workspace.store.restore(first, second).refused == ()
    assert (repository.top / "comes" / "deep" / "kept.log").read_text() == "mine\n"


def test_what_is_there_already_is_no_reason_to_refuse(repository: Repository, workspace: Workspace):
    first, second = two(repository, workspace)
    repository.write("a.txt", "one\ntwo\nthree\n")
    done = workspace.store.restore(first, second)
    assert done.refused == ()
    assert "a.txt" not in done.written
    assert workspace.store.restore(first, second).written == ()


def test_nothing_is_written_through_a_link(repository: Repository, workspace: Workspace, tmp_path: Path):
    first, second = two(repository, workspace)
    outside = tmp_path / "outside"
    (outside / "down").mkdir(parents=True)
    (repository.top / "deep").symlink_to(outside)
    assert "deep/down/goes" in workspace.store.restore(first, second).refused
    assert list((outside / "down").iterdir()) == []
    repository.write("folder/b.txt", "2\n")
    third = workspace.take().tree
    (repository.top / "folder").rename(outside / "folder")
    (repository.top / "folder").symlink_to(outside / "folder")
    assert workspace.store.restore(second, third, ["folder/b.txt"]).refused == ("folder/b.txt",)
    assert (outside / "folder" / "b.txt").read_text() == "2\n"


def test_a_link_is_replaced_not_followed(repository: Repository, workspace: Workspace, tmp_path: Path):
    (tmp_path / "target").write_text("outside")
    first = workspace.take().tree
    (repository.top / "a.txt").unlink()
    (repository.top / "a.txt").symlink_to(tmp_path / "target")
    second = workspace.take().tree
    assert workspace.store.restore(first, second).written == ("a.txt",)
    assert not (repository.top / "a.txt").is_symlink()
    assert (tmp_path / "target").read_text() == "outside"


def test_permissions_stay_as_the_user_set_them(repository: Repository, workspace: Workspace):
    first = workspace.take().tree
    repository.write("a.txt", "2").chmod(0o600)
    second = workspace.take().tree
    workspace.store.restore(first, second)
    assert (repository.top / "a.txt").stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("mode", [0o600, 0o660])
def test_a_file_keeps_its_owner_and_group(repository: Repository, workspace: Workspace, mode: int):
    first = workspace.take().tree
    file = repository.write("a.txt", "2")
    os.chown(file, 1234, 2345)
    file.chmod(mode)
    second = workspace.take().tree
    assert workspace.store.restore(first, second).written == ("a.txt",)
    found = file.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (1234, 2345, mode)


@pytest.mark.skipif(os.geteuid() != 0 or sys.platform != "linux", reason="only root has rights to do without")
@pytest.mark.parametrize(
    ("groups", "before", "group", "after"),
    [
        ([2345], 0o660, 2345, 0o660),
        ([2345], 0o604, 2345, 0o604),
        ([], 0o660, 0, 0o600),
        ([], 0o664, 0, 0o644),
        ([], 0o750, 0, 0o700),
        ([], 0o604, 0, 0o604),
    ],
)
def test_who_cannot_give_a_file_to_its_group_lets_no_other_group_have_it(
    repository: Repository, workspace: Workspace, groups: list[int], before: int, group: int, after: int
):
    """The file is another user's. Its group can be kept by a member of that group, without being root."""
    is_program = bool(before & 0o100)
    file = repository.write("a.txt", "1", program=is_program)
    first = workspace.take().tree
    repository.write("a.txt", "2")
    os.chown(file, 1234, 2345)
    file.chmod(before)
    second = workspace.take().tree
    with member_of(groups), powerless(GIVES_AWAY):
        assert workspace.store.restore(first, second).written == ("a.txt",)
    found = file.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (0, group, after)


def test_a_read_only_file_is_restored(repository: Repository, workspace: Workspace):
    first = workspace.take().tree
    repository.write("a.txt", "2").chmod(0o444)
    second = workspace.take().tree
    assert workspace.store.restore(first, second).written == ("a.txt",)
    assert (repository.top / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert (repository.top / "a.txt").stat().st_mode & 0o777 == 0o444


def test_a_read_only_folder_fails_whole(repository: Repository, workspace: Workspace):
    if os.geteuid() == 0:
        pytest.skip("root writes everywhere")
    first, second = two(repository, workspace)
    (repository.top / "comes" / "deep").chmod(0o555)
    before = on_disk(repository.top)
    with pytest.raises(TreeError):
        workspace.store.restore(first, second)
    assert on_disk(repository.top) == before


def test_left_files_of_a_dead_process_are_removed(repository: Repository, workspace: Workspace):
    workspace.take()
    for name in (".agentmesh-0001", "folder/.agentmesh-0002"):
        repository.write(name, "half of a fi")
    (workspace.store.folder / "writing.json").write_text(
        '[".agentmesh-0001", "folder/.agentmesh-0002", "gone/.agentmesh-0003", "folder"]'
    )
    assert workspace.changed() == {}
    assert set(on_disk(repository.top)) == {"a.txt", "folder/b.txt"}


def test_in_a_folder_of_the_repository_paths_are_relative_to_it(repository: Repository, tmp_path: Path):
    workspace = Workspace.of(repository.top / "folder", tmp_path / "trees" / "w")
    first = workspace.take().tree
    repository.write("a.txt", "2")
    repository.write("folder/b.txt", "2")
    second = workspace.take().tree
    repository.write("a.txt", "3")
    assert workspace.store.restore(first, second).refused == ("../a.txt",)
    assert workspace.store.restore(first, second, ["b.txt"]).written == ("b.txt",)
