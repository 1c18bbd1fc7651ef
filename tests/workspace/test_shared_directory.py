"""Several agents in one directory whose calls overlap: each change is stored once, as whose it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentmesh.domain.ids import AgentId
from agentmesh.store import changes, snapshots, steps, workspaces
from agentmesh.store.call import Lease
from agentmesh.workspace.entries import Entry
from agentmesh.workspace.opening import held, settled
from agentmesh.workspace.roots import Root
from agentmesh.workspace.snapshots import StepSnapshots
from agentmesh.workspace.workspaces import Workspaces
from tests.fixtures.invariants import violations
from tests.fixtures.mesh import HOST, USER, Mesh
from tests.fixtures.repositories import git, repository, write
from tests.fixtures.worker_process import WatchedDatabase


class Directory:
    """The directory of a session, and two processes that work in it."""

    def __init__(self, mesh: Mesh, folder: Path) -> None:
        self.mesh = mesh
        self.path = repository(folder / "repo")
        self.root = Root(mesh.run(workspaces.of_session, mesh.session).id, self.path)
        for table, column in (("workspaces", "path"), ("sessions", "workdir")):
            mesh.conn.execute(f"update agentmesh.{table} set {column} = %s", [str(self.path)])
        self.database = WatchedDatabase(mesh.url, role="test")
        self.here, self.elsewhere = (Workspaces(self.database, folder / "data", host=HOST, os_user=USER) for _ in "12")

    def work(self, agent: AgentId, files: dict[str, str]) -> None:
        """Let a call of an agent change these files."""
        call = self.begin(agent)
        write(self.path, files)
        call.end()

    def begin(self, agent: AgentId, among: Workspaces | None = None, *, names_files: bool = False) -> Working:
        return Working(self, agent, among or self.here, names_files=names_files)

    def before_record(self, work: Callable[[], None]) -> None:
        """Do this right before the next snapshot that belongs to no call is stored."""

        def hook(when: str, name: str) -> None:
            if (when, name) == ("before", "record"):
                del self.database.hook
                work()

        self.database.hook = hook

    def stored(self) -> list[tuple[str | None, set[str]]]:
        """Return whose work each snapshot after the first is, and which files it changes; the oldest first."""
        query = "select path from agentmesh.changes where snapshot_id = %s"
        found = self.mesh.run(snapshots.since, self.root.workspace, 0)
        return [(one.name, set(self.mesh.column(query, one.id))) for one in found if one.kind != "base"]

    def assert_whole(self) -> None:
        """Every ref has a row and every row its ref, and the newest snapshot is what the directory has."""
        found = self.mesh.run(snapshots.since, self.root.workspace, 0)
        refs = git(self.path, "for-each-ref", "--format=%(refname) %(objectname)", "refs/agentmesh").splitlines()
        assert sorted(refs) == sorted(f"{one.ref} {one.tree}" for one in found)
        now = self.here.now(self.root, self.mesh.session)
        assert now == self.mesh.run(workspaces.get, self.root.workspace).head
        assert len(self.mesh.run(snapshots.since, self.root.workspace, 0)) == len(found), "nothing was left to record"
        assert violations(self.mesh.conn) == []


class Working:
    """A call of an agent."""

    def __init__(self, directory: Directory, agent: AgentId, among: Workspaces, *, names_files: bool) -> None:
        self._mesh = directory.mesh
        self.call: Lease = self._mesh.call(agent, "bash")[0]
        self._mesh.run(steps.start_calls, self.call, [0])
        made = among.step(directory.root, self._mesh.session, agent, self.call.seq or 0)
        assert made is not None
        self.step: StepSnapshots = made
        self.entry: Entry | None = None
        self.step.begin(names_files=names_files)

    def end(self, *, twice: bool = False) -> None:
        self.look()
        self.store()
        if twice:
            self.store()

    def look(self) -> None:
        self.entry = self.step.end(0)
        assert self.step.note() == ""

    def store(self) -> None:
        """Store the result, as often as the database does not answer."""
        self._mesh.run(steps.finish_calls, self.call, {0: {}}, None, {0: self.entry} if self.entry else None)


@pytest.fixture
def directory(mesh: Mesh, tmp_path: Path) -> Iterator[Directory]:
    made = Directory(mesh, tmp_path)
    yield made
    made.database.close()


@pytest.fixture
def other(mesh: Mesh) -> AgentId:
    return mesh.fork(mesh.root, "other", "work")


def test_what_others_had_changed_is_stored_also_if_the_call_changes_nothing_and_another_ends_first(
    mesh: Mesh, directory: Directory, other: AgentId
):
    directory.work(mesh.root, {"begin.txt": "x"})
    write(directory.path, {"by-hand.txt": "x"})
    idle = directory.begin(mesh.root)
    directory.work(other, {"other.txt": "x"})
    idle.end(twice=True)
    assert directory.stored() == [
        ("root", {"begin.txt"}),
        ("other", {"other.txt"}),
        (None, {"by-hand.txt"}),
    ]
    directory.assert_whole()


def test_what_another_agent_has_made_in_the_meantime_is_its_own(mesh: Mesh, directory: Directory, other: AgentId):
    directory.work(mesh.root, {"begin.txt": "x"})
    late = directory.begin(mesh.root)
    directory.work(other, {"one.txt": "x"})
    directory.work(other, {"two.txt": "x"})
    write(directory.path, {"late.txt": "x"})
    late.end()
    assert directory.stored() == [
        ("root", {"begin.txt"}),
        ("other", {"one.txt"}),
        ("other", {"two.txt"}),
        ("root", {"late.txt"}),
    ]
    directory.assert_whole()


def test_the_same_for_agents_of_two_processes(mesh: Mesh, directory: Directory, other: AgentId):
    directory.work(mesh.root, {"begin.txt": "x"})
    late = directory.begin(mesh.root)
    there = directory.begin(other, directory.elsewhere)
    write(directory.path, {"there.txt": "x"})
    there.end()
    write(directory.path, {"late.txt": "x"})
    late.end()
    assert directory.stored() == [("root", {"begin.txt"}), ("other", {"there.txt"}), ("root", {"late.txt"})]
    directory.assert_whole()


def test_two_processes_take_the_first_snapshot_at_once(mesh: Mesh, directory: Directory, other: AgentId):
    there = directory.begin(other, directory.elsewhere, names_files=True)
    there.look()
    directory.before_record(there.store)
    here = directory.begin(mesh.root)
    write(directory.path, {"made.txt": "x"})
    here.end()
    assert directory.stored() == [("other", set()), ("root", {"made.txt"})]
    directory.assert_whole()


def test_a_process_stores_a_snapshot_while_another_looks_for_a_fork(mesh: Mesh, directory: Directory, other: AgentId):
    directory.work(mesh.root, {"begin.txt": "x"})
    there = directory.begin(other, directory.elsewhere)
    write(directory.path, {"there.txt": "x"})
    directory.before_record(there.end)
    now = directory.here.now(directory.root, mesh.session)
    assert now == mesh.run(workspaces.get, directory.root.workspace).head
    assert directory.stored() == [("root", {"begin.txt"}), ("other", {"there.txt"})]
    directory.assert_whole()


def test_a_process_stores_a_snapshot_while_another_is_about_to_undo(mesh: Mesh, directory: Directory, other: AgentId):
    directory.work(mesh.root, {"begin.txt": "x"})
    there = directory.begin(other, directory.elsewhere)
    write(directory.path, {"there.txt": "x"})
    there.look()
    directory.before_record(there.store)
    row = mesh.run(workspaces.get, directory.root.workspace)
    with held(directory.here, row) as store:
        assert settled(directory.here, store, row.id) is None, "it has to look again"
    assert directory.stored() == [("root", {"begin.txt"}), ("other", {"there.txt"})]
    directory.assert_whole()


def test_what_is_stored_late_is_not_what_the_directory_had(mesh: Mesh, directory: Directory, other: AgentId):
    directory.work(mesh.root, {"begin.txt": "x"})
    write(directory.path, {"by-hand.txt": "x"})
    idle = directory.begin(mesh.root)
    directory.work(other, {"other.txt": "x"})
    idle.end()
    head = mesh.run(workspaces.get, directory.root.workspace).head
    now = mesh.one("select now()")
    newest = mesh.run(snapshots.newest, directory.root.workspace)
    assert newest is not None
    assert newest.tree == head
    mesh.answer(mesh.root, "ok")
    row = mesh.one("select max(seq) from agentmesh.transcript where agent_id = %s", mesh.root)
    assert mesh.one("select agentmesh.tree_at(%s, %s)", mesh.root, row) == head
    trees = mesh.run(changes.trees_at, mesh.session, now)
    assert {tree for tree, _ in trees.values()} == {head}
    assert {"by-hand.txt", "other.txt"} <= set(git(directory.path, "ls-tree", "--name-only", head or "").split())


def test_an_agent_that_is_killed_leaves_no_refs(mesh: Mesh, directory: Directory, other: AgentId):
    directory.work(mesh.root, {"begin.txt": "x"})
    write(directory.path, {"by-hand.txt": "x"})
    call = directory.begin(other)
    write(directory.path, {"made.txt": "x"})
    call.look()
    mesh.kill(other)
    assert call.entry is not None
    call.step.lost([call.entry])
    directory.work(mesh.root, {"more.txt": "x"})
    assert directory.stored() == [
        ("root", {"begin.txt"}),
        (None, {"by-hand.txt", "made.txt"}),
        ("root", {"more.txt"}),
    ]
    directory.assert_whole()


def test_a_worker_that_dies_in_a_command_leaves_no_refs(mesh: Mesh, directory: Directory, other: AgentId):
    directory.work(mesh.root, {"begin.txt": "x"})
    write(directory.path, {"by-hand.txt": "x"})
    call = directory.begin(other)
    write(directory.path, {"made.txt": "x"})
    next_one = directory.elsewhere.step(directory.root, mesh.session, other, call.call.seq or 0)
    assert next_one is not None
    call.entry = next_one.died(0)
    call.store()
    assert directory.stored() == [("root", {"begin.txt"}), ("other", {"by-hand.txt", "made.txt"})]
    directory.assert_whole()
