"""A worker is killed (SIGKILL) around every commit about workspaces, and between a row and its directory."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from agentmesh.domain.workspaces import Workspace, WorkspaceState
from agentmesh.git.facts import TreeSnapshot as Taken
from agentmesh.llm.simulator.reply import ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.store import snapshots, workspaces
from tests.fixtures.engine import Rig, call, do, say
from tests.fixtures.repositories import git, repository, untouched, write
from tests.fixtures.story import DIED
from tests.fixtures.worker_process import Parts

pytestmark = pytest.mark.timeout(180)

POINTS = [
    *(f"{when} {name} 1" for name in ("start_calls", "finish_calls", "fork", "ready") for when in ("before", "after")),
    *(f"{when} record {n}" for n in (1, 2) for when in ("before", "after")),
    *("after start_calls 2", "before finish_calls 2", "after finish_calls 2"),
    # The row of the tree is there, and its directory is not.
    *("before source 1", "after source 1"),
]


@pytest.fixture
def grove(rig: Rig) -> Rig:
    """A session in a repository with changes, and what its agents will do."""
    repository(rig.workdir)

    def changed_by_hand(_view: ChatRequestView) -> ScriptedReply:
        write(rig.workdir, {"by-hand": "x\n"})
        return do(call("fork", name="child", prompt="work", workspace="own"))

    rig.script(
        "root",
        do(call("bash", command="echo ran >> log")),
        changed_by_hand,
        do(call("wait", timeout=60)),
        say("the end"),
    )
    rig.script("child", do(call("bash", command="cat a.txt; echo ran >> log-of-child")), say("done"))
    return rig


def workspace(rig: Rig, agent: str) -> Workspace:
    return rig.db.run(workspaces.of_agent, rig.agent(agent))


def present(parts: Parts, row: Workspace) -> Taken:
    """Return what is in a workspace now, compared with its newest snapshot."""
    assert parts.workspaces is not None
    place = parts.workspaces.place_of(parts.workspaces.root_of(row))
    return parts.workspaces.store(row.id, place).take(row.head, None)


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_leaves_no_tree_without_its_row_and_no_change_without_its_snapshot(grove: Rig, point: str):
    before = untouched(grove.workdir)
    first = grove.process(point)
    grove.prompt()
    assert first.join() == -signal.SIGKILL
    grove.bury(first.worker_id)
    parts = grove.worker()
    grove.rest()

    assert grove.last()[0] == "the end"
    for agent, name in (("root", "log"), ("child", "log-of-child")):
        row = workspace(grove, agent)
        assert (row.state, row.host) == (WorkspaceState.READY, "testhost")
        (bash,) = grove.results("bash", agent)
        file = Path(str(row.path)) / name
        assert (file.read_text() if file.exists() else "") in (("ran\n",) if "exit_code" in bash else ("", "ran\n"))
        assert bash.get("error") in (None, DIED)
        taken = grove.db.run(snapshots.since, row.id, 0)
        assert {git(grove.workdir, "cat-file", "-t", one.tree) for one in taken} == {"tree"}
        assert [one.before for one in taken[1:]] == [one.tree for one in taken[:-1]]
        own = {path for one in taken if one.agent_id for path in paths_of(grove, one.id)}
        assert own == ({name} if file.exists() else set())
        if agent == "child":
            assert present(parts, row).changes == ()
            assert row.base == taken[0].tree
    assert untouched(grove.workdir) == before
    folders = {path.name for path in (grove.data_dir / "trees").iterdir()}
    assert folders <= {str(workspace(grove, agent).id) for agent in ("root", "child")}


def test_a_tree_that_was_made_before_the_crash_keeps_what_it_was_made_from(grove: Rig):
    first = grove.process("before ready 1")
    grove.db.run(workspaces.note_repository, workspace(grove, "root").id, str(grove.workdir / ".git"))
    from agentmesh.store import agents

    grove.db.run(agents.fork, grove.root, "child", "work", workspace="own")
    assert first.join() == -signal.SIGKILL
    write(grove.workdir, {"a.txt": "newer\n"})
    grove.bury(first.worker_id)
    parts = grove.worker()
    grove.rest()
    row = workspace(grove, "child")
    assert "not committed" in grove.results("bash", "child")[0]["output"]
    assert git(grove.workdir, "show", f"{row.base}:a.txt") == "not committed"
    assert present(parts, row).changes == ()


def paths_of(rig: Rig, snapshot: int) -> list[str]:
    rows = rig.conn.execute("select path from agentmesh.changes where snapshot_id = %s", [snapshot])
    return [path for (path,) in rows]
