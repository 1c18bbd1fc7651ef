from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from agentmesh.domain.errors import TreeError
from agentmesh.git import looking
from agentmesh.git.facts import FileChange
from agentmesh.git.store import Store
from tests.git.repositories import Repository, Workspace, on_disk


def test_a_snapshot_is_the_tree_that_git_would_commit(repository: Repository, workspace: Workspace):
    repository.write("a.txt", "changed\n")
    repository.write("new/deep/file", "x")
    repository.write("run.sh", "#!/bin/sh\n", program=True)
    (repository.top / "link").symlink_to("a.txt")
    (repository.top / "folder" / "b.txt").unlink()
    tree = workspace.take().tree
    repository.git("add", "-A")
    assert tree == repository.git("write-tree").strip()


def test_changes_are_listed_with_their_lines(repository: Repository, workspace: Workspace):
    assert workspace.take().changes == ()
    repository.write("a.txt", "one\n2\nthree\nfour\n")
    repository.write("new", "x\ny\n")
    repository.write("bytes", b"\0\1\2")
    (repository.top / "folder" / "b.txt").unlink()
    assert workspace.take().changes == (
        FileChange("a.txt", "changed", 2, 1),
        FileChange("bytes", "added", 0, 0, binary=True),
        FileChange("folder/b.txt", "removed", 0, 1),
        FileChange("new", "added", 2, 0),
    )
    assert workspace.take().changes == ()


@pytest.mark.parametrize("paths", [None, ["a.txt"]], ids=["after a command", "named"])
def test_a_file_that_only_became_a_program_is_a_change_that_can_be_taken_back(
    repository: Repository, workspace: Workspace, paths: list[str] | None
):
    first = workspace.take().tree
    file = repository.top / "a.txt"
    file.chmod(0o755)
    second = workspace.take(paths=paths)
    assert second.changes == (FileChange("a.txt", "changed", 0, 0),)
    assert workspace.store.restore(first, second.tree).written == ("a.txt",)
    assert not file.stat().st_mode & 0o111
    workspace.take()
    assert workspace.store.restore(second.tree, first).written == ("a.txt",)
    assert file.stat().st_mode & 0o111


def test_a_ref_names_the_tree_and_moves(repository: Repository, workspace: Workspace):
    first = workspace.take()
    ref = "refs/agentmesh/s/a/1"
    assert repository.git("rev-parse", ref).strip() == first.tree
    assert repository.git("cat-file", "-t", ref).strip() == "tree"
    repository.write("a.txt", "2")
    assert workspace.take().tree == repository.git("rev-parse", ref).strip() != first.tree
    assert workspace.store.refs("refs/agentmesh/s/") == {ref: workspace.head}
    workspace.store.free([ref, "refs/agentmesh/s/a/none"])
    assert workspace.store.refs("refs/agentmesh/") == {}


@pytest.mark.parametrize("name", ["refs/heads/main", "refs/agentmesh/../heads/x", "refs/agentmesh/a b", "HEAD"])
def test_only_our_own_refs_are_written(workspace: Workspace, name: str):
    with pytest.raises(TreeError, match="no name of a snapshot"):
        workspace.take(ref=name)
    with pytest.raises(TreeError, match="no name of a snapshot"):
        workspace.store.free([name])


def test_a_look_at_single_files_leaves_all_others(repository: Repository, workspace: Workspace):
    workspace.take()
    for path in ("a.txt", "new", "elsewhere"):
        repository.write(path, "changed\n")
    (repository.top / "folder" / "b.txt").unlink()
    assert workspace.changed(["a.txt", "new"]) == {"a.txt": "changed", "new": "added"}
    assert workspace.changed(["folder/b.txt", "./a.txt"]) == {"folder/b.txt": "removed"}
    assert workspace.changed() == {"elsewhere": "added"}


def test_a_look_at_a_folder_looks_at_everything(repository: Repository, workspace: Workspace):
    workspace.take()
    repository.write("folder/c", "c")
    assert workspace.changed(["folder"]) == {"folder/c": "added"}


def test_ignored_files_are_never_taken(repository: Repository, workspace: Workspace, tmp_path: Path):
    repository.write(".gitignore", "*.log\n")
    repository.write("deep/.gitignore", "secret\n")
    (repository.top / ".git" / "info" / "exclude").write_text("excluded\n")
    (tmp_path / "global").write_text("everywhere\n")
    repository.git("config", "--global", "core.excludesFile", str(tmp_path / "global"))
    workspace.take()
    ignored = ["x.log", "deep/secret", "excluded", "folder/everywhere"]
    for path in ignored:
        repository.write(path, "x")
    assert workspace.changed() == {}
    assert workspace.changed(ignored) == {}


def test_a_tracked_file_is_taken_though_a_pattern_ignores_it(repository: Repository, workspace: Workspace):
    repository.write("kept.log", "1")
    repository.git("add", "-f", "kept.log")
    repository.write(".gitignore", "*.log\n")
    workspace.take()
    repository.write("kept.log", "2")
    assert workspace.changed() == {"kept.log": "changed"}
    repository.write("kept.log", "3")
    assert workspace.changed(["kept.log"]) == {"kept.log": "changed"}


def test_a_large_new_file_is_left_out_and_told(repository: Repository, tmp_path: Path):
    workspace = Workspace.of(repository.top, tmp_path / "trees" / "w", max_file=100)
    workspace.take()
    repository.write("large", "x" * 101)
    repository.write("small", "x" * 100)
    taken = workspace.take()
    assert [each.path for each in taken.changes] == ["small"]
    assert taken.left_out == ("large",)
    assert workspace.take(paths=["large"]).left_out == ("large",)


def test_a_file_that_was_taken_may_grow(repository: Repository, tmp_path: Path):
    workspace = Workspace.of(repository.top, tmp_path / "trees" / "w", max_file=100)
    workspace.take()
    repository.write("a.txt", "x" * 1000)
    assert workspace.changed() == {"a.txt": "changed"}
    repository.write("a.txt", "x" * 2000)
    assert workspace.changed(["a.txt"]) == {"a.txt": "changed"}


def test_a_large_file_of_a_commit_is_in_the_first_snapshot(repository: Repository, tmp_path: Path):
    repository.write("large", "x" * 1000)
    repository.commit()
    workspace = Workspace.of(repository.top, tmp_path / "trees" / "w", max_file=100)
    assert workspace.take().left_out == ()
    repository.write("large", "y" * 1000)
    assert workspace.changed() == {"large": "changed"}


def test_a_repository_without_a_commit_works(tmp_path: Path):
    empty = Repository.init(tmp_path / "empty")
    workspace = Workspace.of(empty.top, tmp_path / "trees" / "w")
    assert empty.files(workspace.take().tree) == {}
    empty.write("first", "1")
    assert workspace.changed() == {"first": "added"}
    own = workspace.own(tmp_path / "trees" / "own")
    assert (own.root / "first").read_text() == "1"
    assert "No commits yet" in Repository(own.root).git("status")


def test_names_of_every_kind_are_kept(repository: Repository, workspace: Workspace):
    workspace.take()
    odd = [
        "new\nline",
        "-dash",
        "with space",
        'quote"',
        "tab\t",
        "bytes-\udcff\udcfe",
        "ünïcode",
        "x" * 255,
        "a~b",
        ".x",
    ]
    for name in odd:
        repository.write(f"odd/{name}", name.encode(errors="surrogateescape"))
    deep = "/".join(["d" * 100] * 30) + "/file"
    repository.write(deep, "deep")
    assert set(workspace.changed()) == {*(f"odd/{name}" for name in odd), deep}
    for name in odd:
        repository.write(f"odd/{name}", "2")
    assert workspace.changed([f"odd/{name}" for name in odd]) == {f"odd/{name}": "changed" for name in odd}
    assert workspace.changed() == {}


def test_names_that_differ_in_case_are_two_files(repository: Repository, workspace: Workspace):
    workspace.take()
    repository.write("Readme", "1")
    repository.write("README", "2")
    assert workspace.changed() == {"README": "added", "Readme": "added"}
    repository.write("Readme", "3")
    assert workspace.changed(["Readme"]) == {"Readme": "changed"}


def test_a_file_becomes_a_directory_and_back(repository: Repository, workspace: Workspace):
    workspace.take()
    (repository.top / "a.txt").unlink()
    repository.write("a.txt/inner", "x")
    assert workspace.changed() == {"a.txt": "removed", "a.txt/inner": "added"}
    (repository.top / "a.txt" / "inner").unlink()
    (repository.top / "a.txt").rmdir()
    repository.write("a.txt", "again")
    assert workspace.changed(["a.txt"]) == {"a.txt": "added", "a.txt/inner": "removed"}
    assert workspace.changed() == {}


def test_a_file_becomes_a_link_and_a_program(repository: Repository, workspace: Workspace):
    workspace.take()
    (repository.top / "a.txt").unlink()
    (repository.top / "a.txt").symlink_to("/etc/passwd")
    (repository.top / "folder" / "b.txt").chmod(0o755)
    assert workspace.changed() == {"a.txt": "changed", "folder/b.txt": "changed"}
    assert repository.files(workspace.head or "") == {
        "a.txt": ("120000", b"/etc/passwd"),
        "folder/b.txt": ("100755", b"b\n"),
    }


def test_a_linked_folder_is_stored_as_a_link(repository: Repository, workspace: Workspace, tmp_path: Path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("x")
    workspace.take()
    (repository.top / "out").symlink_to(tmp_path / "outside")
    assert workspace.changed() == {"out": "added"}
    with pytest.raises(TreeError, match="through a symbolic link"):
        workspace.take(paths=["out/secret"])


def test_a_folder_that_became_a_link_to_the_same_files_is_a_link(repository: Repository, workspace: Workspace):
    first = workspace.take().tree
    (repository.top / "folder").rename(repository.top / "real")
    (repository.top / "folder").symlink_to("real")
    second = workspace.take()
    repository.git("add", "-A")
    assert second.tree == repository.git("write-tree").strip()
    assert workspace.store.restore(first, second.tree).refused == ()
    assert not (repository.top / "folder").is_symlink()
    assert workspace.take().tree == first
    assert workspace.store.restore(second.tree, first).refused == ()
    assert (repository.top / "folder").readlink() == Path("real")
    assert workspace.take().tree == second.tree


def test_empty_folders_are_no_files(repository: Repository, workspace: Workspace):
    workspace.take()
    (repository.top / "empty" / "inner").mkdir(parents=True)
    assert workspace.changed() == {}


def test_pipes_and_sockets_are_passed_over(repository: Repository, workspace: Workspace):
    workspace.take()
    os.mkfifo(repository.top / "pipe")
    (repository.top / "a.txt").unlink()
    os.mkfifo(repository.top / "a.txt")
    assert workspace.changed() == {"a.txt": "removed"}
    assert workspace.changed(["pipe", "a.txt"]) == {}


def test_unreadable_files_are_left_out_and_told(repository: Repository, workspace: Workspace):
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    workspace.take()
    repository.write("closed", "x").chmod(0)
    repository.write("a.txt", "2").chmod(0)
    taken = workspace.take()
    assert taken.changes == ()
    assert taken.left_out == ("a.txt", "closed")


def test_a_snapshot_that_is_gone_is_said(workspace: Workspace):
    with pytest.raises(TreeError, match="no longer in the repository"):
        workspace.store.take("0" * 39 + "1", None)


def test_a_folder_of_the_repository_tells_paths_relative_to_it(repository: Repository, tmp_path: Path):
    workspace = Workspace.of(repository.top / "folder", tmp_path / "trees" / "w")
    workspace.take()
    repository.write("folder/b.txt", "2")
    repository.write("a.txt", "2")
    assert workspace.changed() == {"b.txt": "changed", "../a.txt": "changed"}
    repository.write("folder/c", "1")
    assert workspace.changed(["c"]) == {"c": "added"}


def test_nothing_on_disk_changes(repository: Repository, workspace: Workspace):
    repository.write("untracked", "x")
    before = on_disk(repository.top)
    workspace.take()
    workspace.take(paths=["a.txt"])
    assert on_disk(repository.top) == before


def test_a_look_whose_result_was_never_stored_hides_nothing_from_the_next(
    repository: Repository, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    first = workspace.take().tree
    repository.write("made", "by a command whose worker then died")
    monkeypatch.setattr(looking, "time", SimpleNamespace(time_ns=lambda: time.time_ns() + 1_000_000_000))
    lost = workspace.store.take(first, None, apart=True)
    again = workspace.store.take(first, None, apart=True)
    assert (lost.unmade, again.unmade, again.tree) == (None, None, lost.tree)
    repository.write("made", "and now by somebody else")
    assert workspace.store.take(again.tree, None, apart=True).unmade is None, "it is known"


def looked(store: Store) -> bool:
    """Return whether a store has what it has looked at in memory."""
    return store._look is not None


def test_a_store_that_rested_goes_on_from_its_folder(repository: Repository, workspace: Workspace):
    repository.write("big/one", "1\n")
    workspace.take()
    store = workspace.store
    store.rest(3600.0)
    assert looked(store)
    with store.held():
        store.rest(0.0)
        assert looked(store)
    store.rest(0.0)
    assert not looked(store)
    repository.write("big/one", "one\n")
    (repository.top / "a.txt").unlink()
    assert [each.path for each in workspace.take().changes] == ["a.txt", "big/one"]
