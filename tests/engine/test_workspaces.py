"""Where agents work: own trees made from what the parent has, and snapshots after each call with effects."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from agentmesh.domain.workspaces import Snapshot, Workspace, WorkspaceState
from agentmesh.store import agents, snapshots, workspaces
from tests.fixtures.engine import Rig, call, do, say
from tests.fixtures.repositories import git, repository, untouched, write


@pytest.fixture
def grove(rig: Rig) -> Rig:
    """A session in a repository with changes."""
    repository(rig.workdir)
    return rig


def workspace(rig: Rig, agent: str) -> Workspace:
    return rig.db.run(workspaces.of_agent, rig.agent(agent))


def tree(rig: Rig, agent: str) -> Path:
    return Path(str(workspace(rig, agent).path))


def taken(rig: Rig, agent: str = "root") -> list[Snapshot]:
    """Return the snapshots of an agent's workspace, oldest first."""
    return rig.db.run(snapshots.since, workspace(rig, agent).id, 0)


def changed(rig: Rig, snapshot: Snapshot) -> dict[str, str]:
    rows = rig.conn.execute("select path, status from agentmesh.changes where snapshot_id = %s", [snapshot.id])
    return dict(rows.fetchall())


def own_child(rig: Rig, *replies: Any, prompt: str = "work") -> None:
    """Let the root fork a child with its own tree."""
    rig.script("root", do(call("fork", name="child", prompt=prompt, workspace="own")))
    rig.script("child", *replies)
    rig.run()


def then(rig: Rig, agent: str, *replies: Any) -> None:
    """Give an agent that has worked its further answers."""
    rig.script(agent, *([say("")] * rig.kinds(agent).count("assistant")), *replies)


# Own trees


def test_an_own_tree_has_what_the_parent_has_now_and_nothing_else(grove: Rig):
    grove.worker()
    own_child(grove, do(call("bash", command="cat a.txt new.txt src/b.py; ls -A; pwd")))
    (result,) = grove.results("bash", "child")
    path = tree(grove, "child")
    assert result["output"].splitlines() == [
        *("not committed", "not tracked", "b = 1", ".git", ".gitignore", "a.txt", "new.txt", "src"),
        str(path),
    ]
    assert path.is_relative_to(grove.data_dir / "trees")


def test_what_an_agent_does_in_its_own_tree_stays_there(grove: Rig):
    grove.worker()
    before = untouched(grove.workdir)
    own_child(
        grove,
        do(call("read", path="a.txt"), call("bash", command="echo x > made; rm src/b.py; git commit -qam mine")),
        do(call("edit", path="a.txt", old="not committed", new="changed"), call("write", path="deep/new", content="y")),
    )
    path = tree(grove, "child")
    assert (path / "a.txt").read_text() == "changed\n"
    assert (path / "deep" / "new").read_text() == "y"
    assert not (path / "src" / "b.py").exists()
    assert (grove.workdir / "a.txt").read_text() == "not committed\n"
    assert (grove.workdir / "src" / "b.py").exists()
    assert not (grove.workdir / "made").exists()
    assert untouched(grove.workdir) == before


def test_the_child_is_told_where_it_works_and_shares_its_parent_s_prompt_and_tools(grove: Rig):
    grove.worker()
    own_child(grove, say("done"))
    mine, its = grove.requests("root")[0].body, grove.requests("child")[0].body
    assert its["messages"][0] == mine["messages"][0]
    assert json.dumps(its["tools"]) == json.dumps(mine["tools"])
    introduction = its["messages"][-1]["content"]
    assert f"You work in {tree(grove, 'child')}, a copy of your parent's files" in introduction


def test_a_fork_that_asks_for_nothing_shares_its_parent_s_directory(grove: Rig):
    grove.worker()
    grove.script("root", do(call("fork", name="child", prompt="work")))
    grove.script("child", do(call("bash", command="pwd")))
    grove.run()
    assert grove.results("bash", "child")[0]["output"].strip() == str(grove.workdir)
    assert workspace(grove, "child").id == workspace(grove, "root").id
    assert "You work in" not in grove.requests("child")[0].body["messages"][-1]["content"]


def test_a_child_of_an_agent_with_its_own_tree_works_in_that_tree(grove: Rig):
    grove.worker()
    grove.script("grandchild", do(call("write", path="from-below", content="x")))
    own_child(grove, do(call("fork", name="grandchild", prompt="work"), call("wait", timeout=30)))
    assert (tree(grove, "child") / "from-below").read_text() == "x"
    assert not (grove.workdir / "from-below").exists()


def test_an_own_tree_of_an_own_tree_has_its_parent_s_changes(grove: Rig):
    grove.worker()
    grove.script("grandchild", do(call("bash", command="cat made; echo two > made")))
    own_child(
        grove,
        do(call("bash", command="echo one > made")),
        do(call("fork", name="grandchild", prompt="work", workspace="own"), call("wait", timeout=30)),
    )
    assert grove.results("bash", "grandchild")[0]["output"] == "one\n"
    assert (tree(grove, "child") / "made").read_text() == "one\n"
    assert (tree(grove, "grandchild") / "made").read_text() == "two\n"


def test_a_task_can_have_its_own_tree(grove: Rig):
    grove.worker()
    grove.script("root", do(call("task", description="try it", prompt="[sub] go", workspace="own")))
    grove.script("sub", do(call("write", path="tried", content="x")))
    grove.run()
    assert (tree(grove, "try-it") / "tried").exists()
    assert not (grove.workdir / "tried").exists()
    told = grove.requests("sub")[0].body["messages"][1]["content"]
    assert f"The working directory is a copy of {grove.workdir}" in told


def test_with_own_trees_by_default_sub_agents_and_typed_forks_are_told_of_their_own(grove: Rig):
    """A type that says nothing about the workspace is told where it really works."""
    grove.conn.execute("update agentmesh.sessions set workspace = 'own'")
    grove.worker()
    task = call("task", description="try it", prompt="[sub] go")
    grove.script("root", do(task, call("fork", name="looker", prompt="Look.", type="explore")))
    grove.script("sub", do(call("write", path="tried", content="x")))
    grove.run()
    assert not (grove.workdir / "tried").exists()
    for agent in ("sub", "looker"):
        told = grove.requests(agent)[0].body["messages"][1]["content"]
        assert f"The working directory is a copy of {grove.workdir}" in told


def test_own_trees_by_default_without_a_repository_are_told_as_the_shared_directory(rig: Rig):
    rig.conn.execute("update agentmesh.sessions set workspace = 'own'")
    rig.conn.execute("update agentmesh.workspaces set problem = 'no repository'")
    rig.worker()
    rig.script("root", do(call("task", description="try it", prompt="[sub] go")))
    rig.run()
    told = rig.requests("sub")[0].body["messages"][1]["content"]
    assert f"The working directory is {rig.workdir};" in told


def test_configuration_is_read_in_the_session_s_directory(grove: Rig):
    write(grove.workdir, {"AGENTS.md": "Say aye.\n"})
    grove.worker()
    grove.script("child", do(call("task", description="look", prompt="[sub] go")))
    own_child(
        grove,
        do(call("bash", command="echo 'Say no.' > AGENTS.md"), call("task", description="look", prompt="[sub] go")),
    )
    told = grove.requests("sub")[0].body["messages"][1]["content"]
    assert "Say aye." in told
    assert f"The working directory is {tree(grove, 'child')}" in told


def test_a_directory_without_a_repository_refuses_own_trees_in_words(rig: Rig):
    rig.worker()
    rig.script("root", do(call("fork", name="child", prompt="x", workspace="own"), call("fork", name="b", prompt="x")))
    rig.run()
    refused, made = rig.results("fork")
    assert "repository" in refused["error"]
    assert "shared" in refused["hint"]
    assert made["name"] == "b"


def test_a_tree_that_cannot_be_made_ends_the_turn_in_words_and_the_parent_hears_it(grove: Rig):
    grove.db.run(agents.fork, grove.root, "child", workspace="own")
    folder = grove.data_dir / "trees" / str(workspace(grove, "child").id)
    folder.parent.mkdir(parents=True)
    folder.write_text("no folder")
    grove.worker()
    grove.send("root", "child", "work")
    grove.rest()
    error = grove.last("child")[1]
    assert error is not None
    assert error.startswith("The agent's own tree could not be made")
    assert workspace(grove, "child").state == WorkspaceState.FAILED
    (heard,) = [content for kind, content in grove.rows() if kind == "mail"]
    assert heard["text"] == error
    folder.unlink()
    then(grove, "child", do(call("bash", command="pwd")))
    grove.prompt("again", "child")
    grove.rest()
    assert workspace(grove, "child").state == WorkspaceState.READY


def test_a_tree_that_somebody_removed_is_made_again_from_its_newest_snapshot(grove: Rig):
    import shutil

    grove.worker()
    own_child(grove, do(call("write", path="made", content="kept")))
    shutil.rmtree(tree(grove, "child").parent)
    then(grove, "child", do(call("read", path="made")))
    grove.prompt("look", "child")
    grove.rest()
    assert "kept" in grove.results("read", "child")[0]["content"]


def test_an_agent_whose_tree_is_on_another_host_is_not_run_here(grove: Rig):
    grove.worker()
    own_child(grove, say("done"))
    grove.conn.execute("update agentmesh.workspaces set host = 'elsewhere' where kind = 'own'")
    grove.prompt("again", "child")
    grove.rest()
    error = grove.last("child")[1]
    assert error is not None
    assert "is on elsewhere" in error


def test_a_path_of_the_parent_is_refused_with_the_right_one(grove: Rig):
    grove.root = grove.session()
    grove.worker()
    theirs = str(grove.workdir / "a.txt")
    own_child(grove, do(call("read", path=theirs), call("write", path=theirs, content="x")))
    for tool in ("read", "write"):
        (refused,) = grove.results(tool, "child")
        assert "is not in your own tree" in refused["error"]
        assert refused["hint"] == "You probably mean a.txt."
    assert (grove.workdir / "a.txt").read_text() == "not committed\n"


# Snapshots


def test_each_call_with_effects_has_its_snapshot_in_a_shared_directory(grove: Rig):
    grove.worker()
    before = untouched(grove.workdir)
    grove.script(
        "root",
        do(call("bash", command="echo x > made")),
        do(call("read", path="a.txt")),
        do(call("edit", path="a.txt", old="not committed", new="edited"), call("write", path="n/ew", content="1\n2\n")),
    )
    grove.run()
    base, bash, edit, wrote = taken(grove)
    assert (base.kind, base.before, base.agent_id) == ("base", None, None)
    assert changed(grove, bash) == {"made": "added"}
    assert changed(grove, edit) == {"a.txt": "changed"}
    assert changed(grove, wrote) == {"n/ew": "added"}
    assert [one.agent_id for one in (bash, edit, wrote)] == [grove.root] * 3
    assert [one.before for one in (bash, edit, wrote)] == [base.tree, bash.tree, edit.tree]
    assert (wrote.added, wrote.removed) == (2, 0)
    assert workspace(grove, "root").head == wrote.tree
    for one in (base, bash, edit, wrote):
        assert git(grove.workdir, "rev-parse", str(one.ref)) == one.tree
        assert git(grove.workdir, "cat-file", "-t", str(one.ref)) == "tree"
    assert untouched(grove.workdir) == before
    assert git(grove.workdir, "show", f"{bash.ref}:made") == "x"


def test_what_others_change_between_steps_is_nobody_s(grove: Rig):
    grove.worker()
    grove.script("root", do(call("bash", command="echo x > made")))
    grove.run()
    write(grove.workdir, {"by-hand": "1\n", "a.txt": "by hand\n"})
    then(grove, "root", do(call("bash", command="echo y > made")))
    grove.run("again")
    *_, outside, mine = taken(grove)
    assert (outside.kind, outside.agent_id) == ("outside", None)
    assert changed(grove, outside) == {"a.txt": "changed", "by-hand": "added"}
    assert changed(grove, mine) == {"made": "changed"}


def test_a_file_that_a_person_changed_before_an_agent_writes_it_is_nobody_s_first(grove: Rig):
    grove.worker()
    grove.script("root", do(call("write", path="made", content="1\n")))
    grove.run()
    write(grove.workdir, {"made": "by hand\n", "else": "by hand too\n"})
    then(grove, "root", do(call("read", path="made")), do(call("write", path="made", content="2\n")))
    grove.run("again")
    *_, outside, mine = taken(grove)
    assert (outside.kind, changed(grove, outside)) == ("outside", {"made": "changed"})
    assert (mine.kind, changed(grove, mine)) == ("call", {"made": "changed"})


def test_a_call_that_changes_nothing_has_no_snapshot(grove: Rig):
    grove.worker()
    grove.script("root", do(call("bash", command="echo x > made")), do(call("bash", command="cat made")))
    grove.run()
    assert [one.kind for one in taken(grove)] == ["base", "call"]


def test_a_command_that_nobody_approved_can_change_nothing_and_is_not_looked_after(grove: Rig):
    grove.conn.execute("update agentmesh.sessions set permission_mode = 'ask'")
    grove.worker()
    grove.script("root", do(call("bash", command="cat a.txt")))
    grove.run()
    assert "not committed" in grove.results("bash")[0]["output"]
    assert taken(grove) == []
    assert git(grove.workdir, "for-each-ref", "refs/agentmesh") == ""


def test_a_failed_command_s_changes_are_seen(grove: Rig):
    grove.worker()
    grove.script("root", do(call("bash", command="echo x > made; exit 3")))
    grove.run()
    assert changed(grove, taken(grove)[-1]) == {"made": "added"}


def test_an_agent_that_is_killed_in_a_command_leaves_no_ref_without_a_row(grove: Rig):
    grove.script("child", do(call("bash", command="echo x > made; sleep 600")))
    worker = grove.worker().worker
    grove.fork("child", "work")
    grove.until((grove.workdir / "made").exists, "the command")
    grove.kill("child")
    grove.until(lambda: worker.agents == 0, "the end of its thread")
    refs = git(grove.workdir, "for-each-ref", "--format=%(refname)", "refs/agentmesh").splitlines()
    assert refs == [one.ref for one in taken(grove)]


def test_a_large_file_is_left_out_and_the_model_is_told(grove: Rig):
    from agentmesh.config.schema import Workspace as Settings

    grove.worker(workspace=Settings(max_file=2000))
    grove.script("root", do(call("bash", command="true")), do(call("bash", command="head -c 3000 /dev/zero > big")))
    grove.run()
    assert "Too large or unreadable: big" in grove.results("bash")[1]["note"]


def test_a_snapshot_that_cannot_be_taken_fails_no_call_and_is_said_once(grove: Rig):
    grove.worker()
    grove.data_dir.mkdir()
    (grove.data_dir / "trees").write_text("no folder")
    grove.script("root", do(call("bash", command="echo x > made")), do(call("bash", command="echo y > made")))
    grove.run()
    first, second = grove.results("bash")
    assert (first["exit_code"], second["exit_code"]) == (0, 0)
    assert "No snapshot was taken" in first["note"]
    assert "note" not in second


def test_ignored_files_are_never_taken(grove: Rig):
    grove.worker()
    grove.script("root", do(call("bash", command="echo x > ignored/more; echo x > made")))
    grove.run()
    listed = git(grove.workdir, "ls-tree", "-r", "--name-only", str(taken(grove)[-1].ref)).split("\n")
    assert listed == [".gitignore", "a.txt", "made", "new.txt", "src/b.py"]


def test_snapshots_can_be_switched_off(grove: Rig):
    from agentmesh.config.schema import Workspace as Settings

    grove.worker(workspace=Settings(snapshots=False))
    grove.script("root", do(call("bash", command="echo x > made")))
    grove.run()
    assert taken(grove) == []


# What it costs where it is of no use


def test_without_a_repository_nothing_is_asked_or_looked_at_for_it(rig: Rig):
    asked: list[str] = []
    looked: list[str] = []

    def is_of_an_agent() -> bool:  # other threads look after trees at times of their own
        return threading.current_thread().name.startswith("agent-")

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str) and ".git" in arguments[0] and is_of_an_agent():
            looked.append(arguments[0])

    def note(when: str, name: str) -> None:
        if when == "before" and is_of_an_agent():
            asked.append(name)

    parts = rig.worker(hook=note)
    rig.script("root", *(do(call("bash", command=f"echo {n} > made")) for n in range(3)))
    rig.run()
    asked.clear()
    sys.addaudithook(audit)
    then(rig, "root", *(do(call("bash", command=f"echo {n} > made")) for n in range(3, 6)))
    rig.run("again")
    calls = ["start_calls", "finish_calls", "begin_step", "finish_step"]
    assert [name for name in asked if name in calls][-8:] == calls * 2
    assert set(asked) == {*calls, "standing", "context"}
    assert looked == []
    assert parts.workspaces is not None
    assert not parts.workspaces.folders.trees.exists()
