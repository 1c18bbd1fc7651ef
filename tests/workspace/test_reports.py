"""What others reported of worktrees for agents (anthropics/claude-code), by number: none of it happens here."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from agentmesh.domain.workspaces import Workspace, WorkspaceState
from agentmesh.store import workspaces
from tests.fixtures.engine import Rig, call, do, say
from tests.fixtures.repositories import git, untouched, write


def workspace(rig: Rig, agent: str) -> Workspace:
    return rig.db.run(workspaces.of_agent, rig.agent(agent))


def tree(rig: Rig, agent: str) -> Path:
    return Path(str(workspace(rig, agent).path))


def own_child(rig: Rig, *replies: Any) -> None:
    """Let the root fork a child with its own tree, which gives these answers."""
    rig.script("root", do(call("fork", name="child", prompt="work", workspace="own")))
    rig.script("child", *replies)
    rig.run()


def files(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder but those of Git."""
    found: dict[str, bytes] = {}
    for above, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        found |= {os.path.join(above, name): Path(above, name).read_bytes() for name in names}
    return found


def test_52958_an_isolated_agent_writes_nothing_in_the_parent_s_checkout(grove: Rig):
    grove.worker()
    before, there = untouched(grove.workdir), grove.workdir
    ways = (
        do(
            call("write", path=f"{there}/by-write", content="x"), call("write", path="../../../../repo/up", content="x")
        ),
        do(call("read", path="a.txt"), call("edit", path=f"{there}/a.txt", old="not", new="x")),
        do(call("bash", command=f"echo x > {there}/by-bash; cd {there} && echo x > by-cd; git -C {there} add -A")),
        do(
            call("bash", command="ln -s ../../../../repo link; echo x > link/by-link"),
            call("write", path="link/l", content="x"),
        ),
        do(call("write", path="here", content="x")),
    )
    has = files(there)
    own_child(grove, *ways)
    assert files(there) == has
    assert untouched(there) == before
    assert (tree(grove, "child") / "here").exists()


def test_41010_no_clean_up_removes_the_parent_s_directory(grove: Rig):
    from agentmesh.git.trees import remove_tree

    grove.worker()
    own_child(grove, do(call("write", path="here", content="x")))
    row, trees = workspace(grove, "child"), grove.data_dir / "trees"
    has = files(grove.workdir)
    for folder, name in ((grove.workdir, row.id), (grove.workdir.parent, row.id), (trees, row.id)):
        assert not remove_tree(folder, str(name), trees)
    assert not remove_tree(trees / str(row.id), str(workspace(grove, "root").id), trees)
    shutil.move(trees / str(row.id) / "tree", grove.workdir.parent / "moved")
    (trees / str(row.id) / "tree").symlink_to(grove.workdir)
    assert remove_tree(trees / str(row.id), str(row.id), trees)
    assert files(grove.workdir) == has


def test_70456_isolation_is_never_silently_off(rig: Rig):
    rig.worker()
    rig.script("root", do(call("fork", name="child", prompt="x", workspace="own")))
    rig.run()
    (refused,) = rig.results("fork")
    assert "repository" in refused["error"]
    assert rig.one("select count(*) from agentmesh.agents") == 1


def test_81361_and_57768_a_tree_is_made_from_what_the_parent_has_now(grove: Rig):
    git(grove.workdir, "update-ref", "refs/remotes/origin/main", "HEAD~1")
    git(grove.workdir, "checkout", "-q", "--detach", "HEAD~1", "-f")
    write(grove.workdir, {"a.txt": "newest\n", "untracked": "too\n"})
    git(grove.workdir, "rm", "-q", "--cached", "src/b.py")
    grove.worker()
    own_child(grove, do(call("bash", command="cat a.txt untracked src/b.py; git log --format=%s -1")))
    (result,) = grove.results("bash", "child")
    assert result["output"].splitlines() == ["newest", "too", "b = 1", "first"]


def test_50207_and_47548_the_parent_s_branch_does_not_move(grove: Rig):
    grove.worker()
    before = untouched(grove.workdir)
    own_child(
        grove,
        do(call("bash", command="git -c user.name=a -c user.email=a@b commit -qam mine; git log --format=%s -1")),
        do(call("bash", command="git checkout -q -b other; git branch -D main; git tag v1; git stash list")),
        do(call("bash", command="git reset -q --hard HEAD~1; git gc -q --prune=now; git log --format=%s -1")),
    )
    outputs = [result["output"].strip() for result in grove.results("bash", "child")]
    assert outputs[0] == "mine"
    assert outputs[2] == "second"
    assert untouched(grove.workdir) == before
    git(grove.workdir, "fsck", "--strict")


def test_62889_every_tool_is_bound_to_the_tree(grove: Rig):
    grove.worker()
    own_child(
        grove,
        do(call("write", path="only-here", content="word\n")),
        do(
            call("bash", command="pwd"),
            call("glob", pattern="only-*"),
            call("grep", pattern="word"),
            call("read", path="only-here"),
        ),
        do(call("fork", name="grandchild", prompt="x"), call("wait", timeout=30)),
    )
    assert grove.results("bash", "child")[0]["output"].strip() == str(tree(grove, "child"))
    assert grove.results("glob", "child")[0]["files"] == ["only-here"]
    assert "only-here" in str(grove.results("grep", "child")[0]["matches"])
    assert "word" in grove.results("read", "child")[0]["content"]
    assert tree(grove, "grandchild") == tree(grove, "child")


def test_62889_the_tree_is_bound_by_its_row_and_outlives_the_worker(grove: Rig):
    first = grove.worker()
    own_child(grove, do(call("write", path="here", content="x")), say("done"))
    first.worker.stop()
    grove.worker()
    grove.script("child", say(""), say(""), do(call("bash", command="pwd; cat here")))
    grove.prompt("again", "child")
    grove.rest()
    assert grove.results("bash", "child")[0]["output"].splitlines() == [str(tree(grove, "child")), "x"]
    assert workspace(grove, "child").state == WorkspaceState.READY
