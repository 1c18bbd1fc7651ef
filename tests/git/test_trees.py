from __future__ import annotations

import contextlib
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentmesh.domain.errors import TreeError
from agentmesh.git.store import Store
from agentmesh.git.trees import is_made, make_tree, remove_tree
from tests.git.repositories import Repository, Workspace, on_disk


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    return tmp_path / "trees"


def test_a_tree_has_what_the_user_has_now(repository: Repository, workspace: Workspace, trees: Path):
    repository.write("a.txt", "not committed\n")
    repository.write("untracked", "u\n")
    repository.write("program", "p\n", program=True)
    (repository.top / "link").symlink_to("a.txt")
    repository.write(".gitignore", "ignored\n")
    repository.write("ignored", "secret")
    workspace.take()
    own = workspace.own(trees / "own")
    expected = on_disk(repository.top)
    del expected["ignored"]
    assert on_disk(own.root) == expected
    assert own.changed() == {}
    assert is_made(trees / "own", "own")
    assert not is_made(trees / "own", "another")


def test_snapshots_of_a_tree_are_in_the_users_repository(repository: Repository, workspace: Workspace, trees: Path):
    workspace.take()
    own = workspace.own(trees / "own")
    (own.root / "new").write_text("by the agent\n")
    taken = own.take("refs/agentmesh/s/b/1")
    assert [each.path for each in taken.changes] == ["new"]
    assert repository.files("refs/agentmesh/s/b/1")["new"] == ("100644", b"by the agent\n")
    assert not (repository.top / "new").exists()


def test_making_it_again_changes_nothing(workspace: Workspace, trees: Path):
    workspace.take()
    own = workspace.own(trees / "own")
    (own.root / "a.txt").write_text("by the agent\n")
    assert workspace.own(trees / "own").root == own.root
    assert (own.root / "a.txt").read_text() == "by the agent\n"


def test_a_tree_that_was_cut_short_is_made_again(workspace: Workspace, trees: Path):
    workspace.take()
    half = trees / "own" / "making"
    (half / ".git").mkdir(parents=True)
    (half / "half").write_text("x")
    own = workspace.own(trees / "own")
    assert set(on_disk(own.root)) == {"a.txt", "folder/b.txt"}
    assert not half.exists()


def test_the_folder_of_another_workspace_is_refused(workspace: Workspace, trees: Path):
    tree = workspace.take().tree
    make_tree(workspace.place, tree, trees / "x", "one")
    with pytest.raises(TreeError, match="belongs to the workspace one"):
        make_tree(workspace.place, tree, trees / "x", "two")
    (trees / "y" / "tree").mkdir(parents=True)
    with pytest.raises(TreeError, match="was not made for"):
        make_tree(workspace.place, tree, trees / "y", "y")


def test_the_marker_says_whose_it_is(workspace: Workspace, trees: Path):
    workspace.take()
    workspace.own(trees / "own")
    marker = json.loads((trees / "own" / "workspace.json").read_text())
    assert marker == {
        "workspace": "own",
        "repository": str(workspace.place.common_dir),
        "objects": str(workspace.place.objects),
        "beside": [],
    }


def test_git_works_in_the_tree_and_reaches_nothing_of_the_users(
    repository: Repository, workspace: Workspace, trees: Path
):
    repository.git("branch", "feature")
    repository.git("tag", "v1")
    repository.git("remote", "add", "origin", "/nowhere")
    workspace.take()
    before = repository.state()
    own = Repository(workspace.own(trees / "own").root)
    assert own.git("status", "--short") == ""
    assert own.git("log", "--format=%s") == "first\n"
    assert own.git("symbolic-ref", "HEAD") == "refs/heads/main\n"
    assert own.git("branch", "--format=%(refname:short)").split() == ["feature", "main"]
    assert own.git("tag") == "v1\n"
    assert own.git("remote") == ""
    assert "main" not in own.git("for-each-ref", "refs/agentmesh")
    own.write("a.txt", "2\n")
    own.commit("by the agent")
    own.git("checkout", "-q", "-b", "mine")
    own.write("a.txt", "3\n")
    own.git("stash")
    own.git("gc", "-q", "--prune=now")
    assert own.git("fsck") == ""
    assert repository.state() == before
    assert repository.git("log", "--all", "--format=%s") == "first\n"


def test_the_tree_has_the_users_name_and_no_other_settings(repository: Repository, workspace: Workspace, trees: Path):
    repository.git("config", "user.name", "U")
    repository.git("config", "user.email", "u@example.org")
    repository.git("config", "alias.x", "!touch /tmp/x")
    repository.git("config", "core.autocrlf", "input")
    workspace.take()
    own = Repository(workspace.own(trees / "own").root)
    listed = own.git("config", "--local", "--name-only", "--list").split()
    assert {"user.name", "user.email", "core.autocrlf", "gc.auto"} <= set(listed)
    assert not [key for key in listed if key.startswith(("alias", "remote", "filter", "branch"))]


def test_ignored_files_are_copied_or_linked_where_named(repository: Repository, workspace: Workspace, trees: Path):
    repository.write(".gitignore", ".env\nnode_modules/\n")
    repository.write(".env", "KEY=1\n")
    repository.write("node_modules/lib/index.js", "x\n")
    repository.write("not-ignored", "x\n")
    workspace.take()
    own = workspace.own(trees / "own", copy=(".env", "a.txt", "missing"), link=("node_modules",))
    assert (own.root / ".env").read_text() == "KEY=1\n"
    assert (own.root / "node_modules").readlink() == repository.top / "node_modules"
    assert own.changed() == {}
    assert Repository(own.root).git("status", "--short").split() == ["A", ".gitignore", "A", "not-ignored"]
    (own.root / ".env").write_text("KEY=2\n")
    assert own.changed() == {}
    assert remove_tree(trees / "own", "own", trees)
    assert (repository.top / "node_modules" / "lib" / "index.js").exists()


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "."])
def test_nothing_from_outside_is_copied(workspace: Workspace, trees: Path, path: str):
    workspace.take()
    with pytest.raises(TreeError, match="outside"):
        workspace.own(trees / "own", copy=(path,))


def test_a_folder_of_the_repository_is_the_root(repository: Repository, tmp_path: Path, trees: Path):
    workspace = Workspace.of(repository.top / "folder", trees / "w")
    workspace.take()
    own = workspace.own(trees / "own")
    assert own.root == trees / "own" / "tree" / "folder"
    assert (own.root.parent / "a.txt").exists()
    (own.root / "c").write_text("c")
    assert own.changed() == {"c": "added"}


def test_a_tree_is_removed_with_all_that_is_in_it(workspace: Workspace, trees: Path, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    workspace.take()
    own = workspace.own(trees / "own")
    (own.root / "out").symlink_to(outside)
    closed = own.root / "closed" / "inner"
    closed.mkdir(parents=True)
    (closed / "file").write_text("x")
    closed.chmod(0o500)
    closed.parent.chmod(0)
    assert remove_tree(trees / "own", "own", trees)
    assert not (trees / "own").exists()
    assert (outside / "kept").exists()
    assert remove_tree(trees / "own", "own", trees)


def test_nothing_else_is_ever_removed(workspace: Workspace, trees: Path, tmp_path: Path):
    workspace.take()
    own = workspace.own(trees / "own")
    assert not remove_tree(trees / "own", "another", trees)
    assert not remove_tree(own.root, "own", trees)
    assert not remove_tree(workspace.root, "own", trees)
    assert not remove_tree(trees, "own", tmp_path)
    assert not remove_tree(trees / "own", "own", tmp_path)
    (tmp_path / "trees2").mkdir()
    (tmp_path / "trees2" / "own").symlink_to(trees / "own")
    assert not remove_tree(tmp_path / "trees2" / "own", "own", tmp_path / "trees2")
    assert (own.root / "a.txt").exists()


def test_a_removal_that_was_cut_short_goes_on(workspace: Workspace, trees: Path):
    workspace.take()
    workspace.own(trees / "own")
    for name in ("lock", "view"):
        (trees / "own" / name).rename(trees / f"gone-{name}")
    assert remove_tree(trees / "own", "own", trees)
    assert not (trees / "own").exists()


def test_files_of_a_tree_that_was_removed_are_not_taken_for_deleted_ones(workspace: Workspace, trees: Path):
    workspace.take()
    own = workspace.own(trees / "own")
    tree = own.take().tree
    assert remove_tree(trees / "own", "own", trees)
    with pytest.raises(TreeError, match="is gone"):
        own.store.take(tree, None)
    assert not (trees / "own").exists()


@pytest.mark.parametrize("number", range(10))
def test_who_looks_while_a_tree_is_removed_sees_all_of_it_or_none(workspace: Workspace, trees: Path, number: int):
    for name in range(40):
        (workspace.root / f"f{name}").write_text(str(number))
    workspace.take()
    own = workspace.own(trees / "own")
    whole, begin = own.take().tree, threading.Barrier(4)

    def look() -> set[str]:
        store, seen = Store(own.place, trees / "own"), set()
        begin.wait(20)
        for _ in range(3):
            with contextlib.suppress(TreeError):  # it is gone
                seen.add(store.take(whole, None).tree)
        return seen

    with ThreadPoolExecutor(3) as threads:
        found = [threads.submit(look) for _ in range(3)]
        begin.wait(20)
        assert remove_tree(trees / "own", "own", trees)
        assert set().union(*(each.result(20) for each in found)) <= {whole}
    assert not (trees / "own").exists()


def test_a_tree_is_made_though_the_disk_has_odd_names(repository: Repository, workspace: Workspace, trees: Path):
    for name in ("new\nline", "-dash", "bytes-\udcff", "x" * 255):
        repository.write(f"odd/{name}", "x")
    workspace.take()
    own = workspace.own(trees / "own")
    assert on_disk(own.root) == on_disk(repository.top)
    (own.root / "odd" / os.fsdecode(b"bytes-\xff")).write_text("2")
    assert own.changed() == {"odd/bytes-\udcff": "changed"}
