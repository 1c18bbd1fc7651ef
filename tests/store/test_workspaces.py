"""Workspaces: where agents work, how a tree of their own begins, and how it ends."""

from __future__ import annotations

import uuid

import psycopg
import pytest

from agentmesh.domain.errors import BadArgument, Fenced, NoTree, TreeMoved, UnknownWorkspace, WorkspaceInUse
from agentmesh.domain.workspaces import WorkspaceKind, WorkspaceState
from agentmesh.store import agents, external, sessions, snapshots, steps, travel, workspaces
from tests.fixtures.invariants import violations
from tests.fixtures.mesh import HOST, USER, Mesh
from tests.fixtures.trees import REPOSITORY, Trees

pytestmark = pytest.mark.only_rows


@pytest.fixture
def trees(mesh: Mesh) -> Trees:
    return Trees(mesh)


def unused(mesh: Mesh) -> list[uuid.UUID]:
    return [one.id for one in mesh.run(workspaces.unused, HOST, USER)]


def test_a_session_has_one_directory_in_which_all_its_agents_work(mesh: Mesh):
    child = mesh.fork(mesh.root, "child", "work")
    helper = mesh.task(mesh.root)
    guest = mesh.run(external.guest, mesh.session, "guest")
    directory = mesh.run(workspaces.of_session, mesh.session)
    assert {mesh.run(workspaces.of_agent, agent) for agent in (mesh.root, child, helper, guest)} == {directory}
    assert (directory.kind, directory.state, directory.path, directory.host) == ("shared", "ready", "/tmp", HOST)
    assert (directory.repository, directory.problem, directory.head) == (None, None, None), "nobody has looked"
    standing = mesh.run(steps.standing, mesh.begin(child))
    assert (standing.path, standing.project, standing.workspace_id) == ("/tmp", "/tmp", directory.id)
    assert violations(mesh.conn) == []


def test_a_fork_with_a_tree_of_its_own_has_the_row_before_the_directory(mesh: Mesh, trees: Trees):
    child = mesh.run(agents.fork, mesh.root, "child", "work", workspace="own")
    planned = trees.of(child)
    assert (planned.kind, planned.state, planned.origin) == (
        WorkspaceKind.OWN,
        WorkspaceState.PLANNED,
        trees.directory,
    )
    lease = mesh.begin(child)
    standing = mesh.run(steps.standing, lease)
    assert (standing.path, standing.project, standing.state) == (None, "/tmp", "planned")
    source = mesh.run(workspaces.source, planned.id)
    assert (source.tree, source.is_fixed, source.origin.id) == (trees.first, False, trees.directory)
    ready = mesh.run(workspaces.ready, lease, trees.made(child, trees.first))
    assert (ready.state, ready.base, ready.head) == ("ready", trees.first, trees.first)
    assert ready.path == f"/trees/{ready.id}/tree"
    assert mesh.run(workspaces.ready, lease, trees.made(child, trees.tree())) == ready, "again, it stays as it is"
    assert [one.kind for one in mesh.run(snapshots.since, ready.id, 0)] == ["base"]
    assert violations(mesh.conn) == []


def test_a_tree_that_was_given_is_what_it_is_made_from(mesh: Mesh, trees: Trees):
    tree = trees.tree()
    child = mesh.run(agents.fork, mesh.root, "child", "work", workspace="own", base=tree)
    assert mesh.run(workspaces.source, trees.of(child).id)[:2] == (tree, True)
    with pytest.raises(BadArgument):
        mesh.run(agents.fork, mesh.root, "child", "work", workspace="own", base="HEAD")
    with pytest.raises(BadArgument, match="no id of a tree"):
        mesh.run(agents.fork, mesh.root, "child", "work", base="HEAD")
    for kind in (None, "shared"):
        with pytest.raises(BadArgument, match="only a tree of its own"):
            mesh.run(agents.fork, mesh.root, "child", "work", workspace=kind, base=tree)
    with pytest.raises(BadArgument):
        mesh.run(agents.fork, mesh.root, "child", "work", workspace="mine")


def test_a_tool_and_a_task_plan_one_too(mesh: Mesh, trees: Trees):
    (call,) = mesh.call(mesh.root, "fork")
    forked = mesh.run(agents.fork, mesh.root, "child", "work", call, workspace="own", base=trees.first)
    assert trees.of(forked).at_tree == trees.first
    helper = mesh.task(mesh.root, workspace="own", base=trees.first)
    assert (trees.of(helper).state, trees.of(helper).at_tree) == ("planned", trees.first)
    trees.make(helper)
    mesh.answer(helper)
    before = trees.of(helper)
    mesh.task(mesh.root, agent_id=str(helper), workspace="shared")
    assert trees.of(helper) == before, "used again, it works where it worked"
    assert unused(mesh) == [], "a sub-agent that may be used again keeps its tree"


def test_a_child_of_such_an_agent_works_in_its_tree_unless_it_gets_its_own(mesh: Mesh, trees: Trees):
    parent = trees.own(mesh.root, "lead")
    assert trees.of(mesh.fork(parent, "same")) == trees.of(parent)
    assert trees.of(trees.own(parent, "own")).origin == trees.of(parent).id


def test_where_no_repository_is_an_own_tree_is_refused_in_words_and_a_default_stands_aside(mesh: Mesh):
    directory = mesh.run(workspaces.of_session, mesh.session)
    mesh.conn.execute("update agentmesh.sessions set workspace = 'own'")
    mesh.run(workspaces.note_repository, directory.id, None, "/tmp is in no Git repository")
    with pytest.raises(NoTree, match="/tmp is in no Git repository"):
        mesh.run(agents.fork, mesh.root, "child", workspace="own")
    assert mesh.run(workspaces.of_agent, mesh.fork(mesh.root, "child")).id == directory.id
    mesh.run(workspaces.note_repository, directory.id, REPOSITORY)
    assert mesh.run(workspaces.of_agent, mesh.fork(mesh.root, "child")).kind == "own", "the session's default"
    assert mesh.run(workspaces.of_agent, mesh.run(agents.fork, mesh.root, "child", workspace="shared")).kind == "shared"


def test_a_tree_that_could_not_be_made_says_why_and_is_tried_again(mesh: Mesh, trees: Trees):
    child = mesh.run(agents.fork, mesh.root, "child", "work", workspace="own")
    lease = mesh.begin(child)
    mesh.run(workspaces.failed, lease, "no space left")
    assert (trees.of(child).state, trees.of(child).problem) == ("failed", "no space left")
    assert mesh.run(workspaces.ready, lease, trees.made(child, trees.first)).problem is None
    mesh.run(workspaces.failed, lease, "too late")
    assert trees.of(child).state == "ready"


def test_only_the_owner_says_so(mesh: Mesh, trees: Trees):
    child = mesh.run(agents.fork, mesh.root, "child", "work", workspace="own")
    lease = mesh.begin(child)
    mesh.kill(child)
    for act in (
        lambda: mesh.run(workspaces.ready, lease, trees.made(child, trees.first)),
        lambda: mesh.run(workspaces.failed, lease, "x"),
    ):
        with pytest.raises(Fenced):
            act()


def test_an_origin_that_was_never_made_or_is_gone_stands_aside(mesh: Mesh, trees: Trees):
    planned = mesh.run(agents.fork, mesh.root, "planned", workspace="own")
    child = mesh.run(agents.fork, planned, "child", workspace="own")
    assert mesh.run(workspaces.source, trees.of(child).id)[1:] == (False, mesh.run(workspaces.get, trees.directory))
    chosen = mesh.run(agents.fork, mesh.root, "chosen", workspace="own", base=trees.tree())
    below = mesh.run(agents.fork, chosen, "below", workspace="own")
    assert mesh.run(workspaces.source, trees.of(below).id)[:2] == (trees.of(chosen).at_tree, True)
    made = trees.own(mesh.root, "made")
    last = trees.work(made, "a.txt")
    own = trees.of(mesh.run(agents.fork, made, "own", workspace="own")).id
    assert mesh.run(workspaces.source, own)[:2] == (last, False)
    mesh.conn.execute("update agentmesh.workspaces set state = 'removing' where id = %s", [trees.of(made).id])
    assert mesh.run(workspaces.source, own)[:2] == (last, True), "its files cannot be looked at any more"
    with pytest.raises(UnknownWorkspace):
        mesh.run(workspaces.source, trees.directory)


def test_what_was_seen_of_files_while_they_are_removed_is_no_snapshot(mesh: Mesh, trees: Trees):
    child = trees.own(mesh.root, "child")
    own, seen = trees.of(child).id, trees.entry(child, "a.txt")
    mesh.kill(child)
    for end in (workspaces.removing, workspaces.removed):
        mesh.run(end, own)
        with pytest.raises(TreeMoved, match="are being removed, or are gone"):
            mesh.run(snapshots.record, own, "outside", seen)


def test_a_subtree_that_was_killed_leaves_its_trees_to_be_removed(mesh: Mesh, trees: Trees):
    parent = trees.own(mesh.root, "lead")
    child = trees.own(parent, "child")
    never = mesh.run(agents.fork, parent, "never", workspace="own")
    assert unused(mesh) == []
    with pytest.raises(WorkspaceInUse, match="lead"):
        mesh.run(workspaces.removing, trees.of(parent).id)
    mesh.kill(parent)
    assert set(unused(mesh)) == {trees.of(each).id for each in (parent, child, never)}
    assert mesh.run(workspaces.unused, "elsewhere", USER) == []
    for each in (never, child):
        with pytest.raises(WorkspaceInUse):
            mesh.run(workspaces.removed, trees.of(each).id)
        for _ in range(2):
            assert mesh.run(workspaces.removing, trees.of(each).id).state == "removing"
    assert unused(mesh)[2] == trees.of(parent).id, "what was begun comes first"
    for each in (never, child):
        for _ in range(2):
            assert mesh.run(workspaces.removed, trees.of(each).id).state == "removed"
    assert mesh.run(workspaces.removing, trees.of(child).id).state == "removed"
    assert unused(mesh) == [trees.of(parent).id]
    assert mesh.run(workspaces.ids, HOST, USER) == {trees.of(parent).id}
    assert violations(mesh.conn) == []


def test_the_end_and_the_deletion_of_a_session(mesh: Mesh, trees: Trees):
    child = trees.own(mesh.root, "child")
    trees.work(child, "a.txt")
    trees.merge(mesh.root, child, "a.txt")
    with pytest.raises(WorkspaceInUse, match="the directory of a session"):
        mesh.run(workspaces.removing, trees.directory)
    mesh.run(sessions.end_session, mesh.session)
    own = trees.of(child)
    assert unused(mesh) == [own.id]
    kept = mesh.run(snapshots.refs, mesh.session)
    assert {one.repository for one in kept} == {REPOSITORY}
    assert len(kept) == 4
    assert mesh.run(snapshots.refs, mesh.session, reaped_only=True) == []
    mesh.run(workspaces.removing, own.id)
    mesh.run(workspaces.removed, own.id)
    assert mesh.run(snapshots.refs, mesh.session, reaped_only=True) == []
    mesh.run(sessions.reap, mesh.session)
    assert {one.workspace_id for one in mesh.run(snapshots.refs, mesh.session, reaped_only=True)} == {own.id}
    mesh.run(sessions.delete_session, mesh.session)
    for table in ("workspaces", "snapshots", "changes", "merges", "leases", "conflicts"):
        assert mesh.one(f"select count(*) from agentmesh.{table}") == 0, table


def test_a_session_that_is_forked_works_in_the_same_directory_or_has_the_files_of_the_row(mesh: Mesh, trees: Trees):
    mesh.answer(mesh.root)
    then = mesh.one("select max(seq) from agentmesh.transcript where agent_id = %s", mesh.root)
    trees.work(mesh.root, "a.txt")
    same = mesh.run(travel.fork_session, mesh.root, then)
    assert (trees.of(same.id).kind, trees.of(same.id).path, trees.of(same.id).repository) == (
        "shared",
        "/tmp",
        REPOSITORY,
    )
    other = mesh.run(travel.fork_session, mesh.root, then, workspace="own")
    planned = trees.of(other.id)
    assert (planned.state, planned.at_tree) == ("planned", trees.first)
    assert planned.origin == mesh.run(workspaces.of_session, other.session_id).id
    assert violations(mesh.conn) == []


def test_people_see_them_and_a_move_is_recorded(mesh: Mesh, trees: Trees):
    child = trees.own(mesh.root, "child")
    moved = mesh.run(workspaces.moved, trees.of(child).id, "/elsewhere", "/repo/.git")
    assert (moved.path, moved.repository) == ("/elsewhere", "/repo/.git")
    assert mesh.run(workspaces.moved, trees.directory, "/elsewhere", "/repo/.git").path == "/tmp", "the session's"
    seen = mesh.run(workspaces.listing, mesh.session)
    assert [(one.kind, list(one.agents), one.snapshots) for one in seen] == [
        ("shared", ["root"], 1),
        ("own", ["child"], 1),
    ]
    assert [one.kind for one in mesh.run(workspaces.listing, own_only=True)] == ["own"]
    for act in (workspaces.removing, workspaces.removed):
        with pytest.raises(UnknownWorkspace):
            mesh.run(act, uuid.uuid4())
    with pytest.raises(UnknownWorkspace):
        mesh.run(workspaces.get, uuid.uuid4())


@pytest.mark.parametrize(
    "illegal",
    [
        "state = 'lost'",
        "kind = 'shared'",
        "origin = null",
        "origin = id",
        "path = null",
        "host = null",
        "base = null",
        "head = null",
        "repository = null",
        "state = 'failed'",
        "state = 'removed'",
        "base = 'HEAD'",
    ],
)
def test_a_table_refuses_what_no_workspace_may_be(mesh: Mesh, trees: Trees, illegal: str):
    own = trees.of(trees.own(mesh.root, "child")).id
    with pytest.raises(psycopg.errors.CheckViolation):
        mesh.conn.execute(f"update agentmesh.workspaces set {illegal} where id = %s".encode(), [own])


def test_siblings_are_those_that_changed_the_same_files(mesh: Mesh, trees: Trees):
    one, two, three = (trees.own(mesh.root, name) for name in ("one", "two", "three"))
    trees.work(one, "a.txt", "b.txt")
    trees.work(two, "b.txt")
    trees.work(three, "c.txt")
    found = mesh.run(workspaces.siblings, trees.of(two).id, ["b.txt", "c.txt"])
    assert [each.id for each in found] == [trees.of(three).id, trees.of(one).id], "the newest change first"
    mesh.kill(three)
    assert [each.id for each in mesh.run(workspaces.siblings, trees.of(two).id, ["b.txt", "c.txt"])] == [
        trees.of(one).id
    ]
