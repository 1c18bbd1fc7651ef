"""What snapshots leave alone: all of the user's repository but objects and our refs, and every program it names."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentmesh.git.merging import merge
from agentmesh.git.trees import remove_tree
from tests.git.repositories import Repository, Workspace, on_disk


def everything(repository: Repository, workspace: Workspace, tmp_path: Path) -> None:
    """Do all that this package does, on changed files."""
    first = workspace.take("refs/agentmesh/s/a/1").tree
    repository.write("changed-by-agent", "x\n")
    second = workspace.take("refs/agentmesh/s/a/2").tree
    own = workspace.own(tmp_path / "trees" / "own")
    (own.root / "in-own").write_text("1\n")
    third = own.take("refs/agentmesh/s/b/1").tree
    merged = merge(workspace.place, second, second, third)
    assert merged.tree is not None
    workspace.store.restore(merged.tree, second)
    workspace.store.restore(first, merged.tree)
    assert remove_tree(own.store.folder, "own", tmp_path / "trees")


def test_a_dirty_repository_is_byte_for_byte_as_before(repository: Repository, workspace: Workspace, tmp_path: Path):
    repository.write("a.txt", "stashed\n")
    repository.git("stash")
    repository.write("a.txt", "staged\n")
    repository.git("add", "a.txt")
    repository.write("a.txt", "changed after\n")
    repository.write("untracked", "x")
    repository.git("add", "-N", "untracked")
    repository.git("tag", "v1")
    repository.git("branch", "other")
    before, files = repository.state(), on_disk(repository.top)
    everything(repository, workspace, tmp_path)
    assert repository.state() == before
    assert on_disk(repository.top) == files
    assert "MM a.txt" in repository.git("status", "--short")


def test_a_detached_head_stays_detached(repository: Repository, workspace: Workspace, tmp_path: Path):
    repository.write("c", "c")
    commit = repository.commit()
    repository.git("checkout", "-q", "--detach")
    before = repository.state()
    everything(repository, workspace, tmp_path)
    assert repository.state() == before
    workspace.take()
    assert Repository(workspace.own(tmp_path / "trees" / "next").root).git("rev-parse", "HEAD").strip() == commit


def test_a_rebase_in_progress_goes_on(repository: Repository, workspace: Workspace, tmp_path: Path):
    repository.git("checkout", "-q", "-b", "side")
    repository.write("a.txt", "side\n")
    repository.commit("side")
    repository.git("checkout", "-q", "main")
    repository.write("a.txt", "main\n")
    repository.commit("main")
    repository.git("rebase", "side", check=False)
    assert "UU a.txt" in repository.git("status", "--short")
    before, files = repository.state(), on_disk(repository.top)
    everything(repository, workspace, tmp_path)
    assert repository.state() == before
    assert on_disk(repository.top) == files
    assert b"<<<<<<<" in repository.files("refs/agentmesh/s/a/1")["a.txt"][1]
    repository.write("a.txt", "both\n")
    repository.git("add", "a.txt")
    repository.git("-c", "core.editor=true", "rebase", "--continue")


@pytest.fixture
def trap(repository: Repository, tmp_path: Path) -> Path:
    """Have the repository name a program wherever it can; each makes a file."""
    sprung = tmp_path / "sprung"
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\necho "$0 $@" >> {sprung}\ncat\n')
    program.chmod(0o755)
    for key in (
        "filter.trap.clean",
        "filter.trap.smudge",
        "filter.trap.process",
        "core.fsmonitor",
        "diff.external",
        "diff.trap.command",
        "diff.trap.textconv",
        "merge.trap.driver",
        "core.editor",
        "core.sshCommand",
        "core.pager",
        "credential.helper",
        "core.alternateRefsCommand",
        "uploadpack.packObjectsHook",
        "gpg.program",
        "core.hooksPath",
    ):
        repository.git("config", key, str(program))
    repository.git("config", "filter.trap.required", "true")
    (repository.top / ".git" / "info" / "attributes").write_text("* filter=trap diff=trap merge=trap\n")
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc", "post-merge"):
        (repository.top / ".git" / "hooks").mkdir(exist_ok=True)
        (repository.top / ".git" / "hooks" / hook).symlink_to(program)
    return sprung


def test_no_program_that_a_repository_names_ever_runs(
    repository: Repository, trap: Path, workspace: Workspace, tmp_path: Path
):
    everything(repository, workspace, tmp_path)
    workspace.take()
    own = workspace.own(tmp_path / "trees" / "b")
    (own.root / "a.txt").write_text("one\ntwo\nTHREE\n")
    repository.write("a.txt", "ONE\ntwo\nthree\n")
    base = workspace.head or ""
    merged = merge(workspace.place, base, workspace.take().tree, own.take().tree)
    assert merged.tree is not None
    assert workspace.store.restore(merged.tree, workspace.head or "").written == ("a.txt",)
    assert (repository.top / "a.txt").read_text() == "ONE\ntwo\nTHREE\n"
    assert not trap.exists()
    repository.git("status", check=False)
    assert trap.exists(), "the trap works: git itself runs the program"


def test_a_tree_names_no_program(repository: Repository, trap: Path, workspace: Workspace, tmp_path: Path):
    workspace.take()
    own = Repository(workspace.own(tmp_path / "trees" / "own").root)
    own.write("a.txt", "by the agent\n")
    own.git("add", "-A")
    own.git("commit", "-q", "-m", "x")
    own.git("status")
    assert not trap.exists()


def test_git_keeps_what_our_refs_name_and_shows_none_of_it(
    repository: Repository, workspace: Workspace, tmp_path: Path
):
    repository.git("config", "gc.auto", "0")
    repository.write("kept", "only in a snapshot\n")
    tree = workspace.take("refs/agentmesh/s/a/1").tree
    (repository.top / "kept").unlink()
    assert repository.git("log", "--all", "--format=%s").split() == ["first"]
    assert repository.git("branch", "-a").split() == ["*", "main"]
    assert repository.git("status", "--short") == ""
    assert repository.git("fsck", "--strict") == ""
    repository.git("gc", "-q", "--prune=now")
    assert workspace.store.has(tree)
    assert "+only in a snapshot" in repository.git("diff", "HEAD", "refs/agentmesh/s/a/1")
    repository.git("restore", "--source=refs/agentmesh/s/a/1", "kept")
    assert (repository.top / "kept").read_text() == "only in a snapshot\n"
    (repository.top / "kept").unlink()
    workspace.store.free(["refs/agentmesh/s/a/1"])
    repository.git("gc", "-q", "--prune=now")
    other = Workspace.of(repository.top, tmp_path / "trees" / "other")
    assert not other.store.has(tree)
    assert repository.git("fsck", "--strict") == ""


def test_a_gc_that_packs_our_refs_does_not_hide_them(repository: Repository, workspace: Workspace):
    tree = workspace.take("refs/agentmesh/s/a/1").tree
    repository.git("pack-refs", "--all")
    assert workspace.store.refs("refs/agentmesh/s/") == {"refs/agentmesh/s/a/1": tree}
    workspace.store.free(["refs/agentmesh/s/a/1"])
    assert repository.git("for-each-ref", "refs/agentmesh") == ""


def test_git_pushes_and_clones_none_of_it(repository: Repository, workspace: Workspace, tmp_path: Path):
    remote = Repository.init(tmp_path / "remote.git", "--bare")
    workspace.take("refs/agentmesh/s/a/1")
    repository.git("remote", "add", "origin", str(remote.top))
    repository.git("push", "-q", "--all", "origin")
    repository.git("push", "-q", "--tags", "origin")
    assert "agentmesh" not in remote.git("for-each-ref")
    repository.git("clone", "-q", str(repository.top), str(tmp_path / "clone"))
    assert "agentmesh" not in Repository(tmp_path / "clone").git("for-each-ref")


def test_snapshots_go_on_after_a_gc_that_removed_freed_ones(repository: Repository, workspace: Workspace):
    workspace.take("refs/agentmesh/s/a/1")
    for number in range(3):
        repository.write("x", f"{number}\n")
        workspace.take(f"refs/agentmesh/s/a/{number + 2}")
        workspace.store.free([f"refs/agentmesh/s/a/{number + 1}"])
        repository.git("gc", "-q", "--prune=now")
    repository.write("y", "y\n")
    assert workspace.changed() == {"y": "added"}
    assert repository.git("fsck", "--strict") == ""
