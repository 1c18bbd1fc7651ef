"""Snapshots: stored with the results of the calls after which they were taken, and found by a row of an agent."""

from __future__ import annotations

import psycopg
import pytest

from agentmesh.domain.errors import BadArgument, SnapshotGone, TreeMoved
from agentmesh.store import agents, changes, snapshots, steps, travel
from tests.fixtures.invariants import violations
from tests.fixtures.mesh import Mesh
from tests.fixtures.trees import Trees

pytestmark = pytest.mark.only_rows


@pytest.fixture
def trees(mesh: Mesh) -> Trees:
    return Trees(mesh)


def kinds(mesh: Mesh, trees: Trees) -> list[str]:
    return [one.kind for one in mesh.run(snapshots.since, trees.directory, 0)]


def newest_row(mesh: Mesh, agent) -> int:
    return int(mesh.one("select max(seq) from agentmesh.transcript where agent_id = %s", agent))


def at(mesh: Mesh, agent, row: int) -> str:
    found = mesh.run(snapshots.newest_before, agent, row)
    assert found is not None
    return found.tree


def test_a_snapshot_is_stored_with_the_result_of_its_call(mesh: Mesh, trees: Trees):
    call, _other = mesh.call(mesh.root, "bash", "read")
    mesh.run(steps.start_calls, call, [0])
    taken = snapshots.entry(trees.tree(), trees.first, "refs/1", [("a.txt", "added", 3, 0), ("b.txt", "changed", 2, 1)])
    assert call.ordinal == 0
    for _ in range(2):
        mesh.run(steps.finish_calls, call, {0: {"output": ""}}, None, {0: taken | {"left_out": ["big.bin"]}})
    found = mesh.run(snapshots.newest, trees.directory)
    assert found is not None
    assert (found.kind, found.tree, found.before, found.ref) == ("call", taken["tree"], trees.first, "refs/1")
    assert (found.agent_id, found.name, found.seq, found.ordinal) == (mesh.root, "root", call.seq, 0)
    assert (found.files, found.added, found.removed, found.left_out) == (2, 5, 1, ["big.bin"])
    assert found.row == newest_row(mesh, mesh.root)
    assert trees.head(mesh.root) == taken["tree"]
    assert kinds(mesh, trees) == ["base", "call"], "the same again is stored once"
    view = mesh.run(agents.view, mesh.session)[0]
    assert view.name == "root"
    assert mesh.one("select (lines_added, lines_removed, workspace)::text from agentmesh.v_agents") == "(5,1,shared)"
    assert violations(mesh.conn) == []


def test_the_next_step_stores_it_too_and_is_flushed(mesh: Mesh, trees: Trees):
    """A call with effects was started, so the commit is waited for: no result is on disk without its snapshot."""
    (call,) = mesh.call(mesh.root, "bash")
    mesh.run(steps.start_calls, call, [0])
    taken = trees.entry(mesh.root, "a.txt")
    with mesh.conn.transaction():
        mesh.conn.execute("set local synchronous_commit = on")
        mesh.run(steps.begin_step, call, 0, {0: {"output": ""}}, None, steps.Planned(), {0: taken})
        assert mesh.one("show synchronous_commit") == "on"
    assert trees.head(mesh.root) == taken["tree"]


def test_what_changed_before_the_step_is_nobodys(mesh: Mesh, trees: Trees):
    mesh.answer(mesh.root)
    idle = newest_row(mesh, mesh.root)
    by_hand = trees.entry(mesh.root, "hand.txt")
    after = trees.work(mesh.root, "a.txt", before=by_hand["tree"], outside=[by_hand])
    found = mesh.run(snapshots.since, trees.directory, 0)
    assert [(one.kind, one.agent_id, one.tree) for one in found[1:]] == [
        ("outside", None, by_hand["tree"]),
        ("call", mesh.root, after),
    ]
    assert [one.before for one in found] == [None, trees.first, by_hand["tree"]]
    mesh.answer(mesh.root)
    step = found[2].seq
    assert step is not None
    assert at(mesh, mesh.root, step - 1) == by_hand["tree"], "going back before the step keeps what a person did"
    assert at(mesh, mesh.root, idle) in (trees.first, by_hand["tree"])
    assert violations(mesh.conn) == []


def test_the_files_of_a_row_are_found_by_it(mesh: Mesh, trees: Trees):
    had: dict[int, str] = {}
    for n in range(4):
        trees.work(mesh.root, f"{n}.txt")
        had[newest_row(mesh, mesh.root)] = trees.head(mesh.root)
    mesh.answer(mesh.root)
    assert {row: at(mesh, mesh.root, row) for row in had} == had
    first = min(had)
    assert at(mesh, mesh.root, first - 1) == trees.first, "in the middle of the step: before it"
    assert at(mesh, mesh.root, 0) == trees.first, "before all of them"
    with pytest.raises(BadArgument):
        mesh.run(snapshots.newest_before, mesh.root, 99)
    assert [one.tree for one in mesh.run(snapshots.of_agent, mesh.root)] == list(had.values())[::-1]
    third = sorted(had)[2]
    later = mesh.run(snapshots.of_agent, mesh.root, third)
    assert [one.tree for one in later] == [list(had.values())[3]]
    assert later[-1].before == had[third], "what there was before"


def test_a_fork_of_the_past_has_the_files_of_its_row(mesh: Mesh, trees: Trees):
    trees.work(mesh.root, "a.txt")
    row, then = newest_row(mesh, mesh.root), trees.head(mesh.root)
    trees.work(mesh.root, "b.txt")
    forked = mesh.run(travel.fork_at, mesh.root, "past", row, workspace="own")
    assert trees.of(forked.id).at_tree == then
    assert trees.of(mesh.run(travel.fork_at, mesh.root, "shared", row).id).id == trees.directory
    gone = mesh.run(snapshots.newest_before, mesh.root, row)
    assert gone is not None
    mesh.run(snapshots.freed, [gone.id])
    with pytest.raises(SnapshotGone):
        mesh.run(travel.fork_at, mesh.root, "past", row, workspace="own")
    other = mesh.new_session()
    assert mesh.run(snapshots.newest_before, other, 0) is None
    assert trees.of(mesh.run(travel.fork_at, other, "past", 0, workspace="own").id).at_tree is None


def test_a_snapshot_of_no_call_begins_at_the_newest(mesh: Mesh, trees: Trees):
    after = trees.work(mesh.root, "a.txt")
    mesh.answer(mesh.root)
    with pytest.raises(TreeMoved):
        mesh.run(snapshots.record, trees.directory, "outside", snapshots.entry(trees.tree(), trees.first, "refs/x"))
    undone = trees.undo(mesh.root, trees.first)
    assert mesh.run(snapshots.get, undone).tree == trees.first  # type: ignore[union-attr]
    assert mesh.rows(mesh.root)[-1][1] == {"event": "files_undone", "text": "undone", "snapshot": undone}
    redone = trees.undo(mesh.root, after, kind="redo")
    again = snapshots.entry(after, trees.first, "refs/u")
    assert mesh.run(snapshots.record, trees.directory, "redo", again, agent=mesh.root) == redone, "the same again"
    with pytest.raises(BadArgument):
        mesh.run(snapshots.record, trees.directory, "call", again)
    with pytest.raises(BadArgument):
        mesh.run(snapshots.record, trees.directory, "outside", again, agent=mesh.root)
    assert violations(mesh.conn) == []


def test_two_agents_may_store_theirs_in_another_order_than_they_took_them(mesh: Mesh, trees: Trees):
    child = mesh.fork(mesh.root, "child", "work")
    (first,), (second,) = mesh.call(mesh.root, "bash"), mesh.call(child, "bash")
    early, late = trees.tree(), trees.tree()
    for call, tree, before in ((second, late, early), (first, early, trees.first)):
        mesh.run(steps.start_calls, call, [0])
        taken = snapshots.entry(tree, before, f"refs/{tree}", [("a.txt", "changed", 1, 1)])
        mesh.run(steps.finish_calls, call, {0: {"output": ""}}, None, {0: taken})
    assert trees.head(mesh.root) == late, "the one that was taken last"
    assert violations(mesh.conn) == []


def test_of_very_many_changed_files_2000_have_a_row(mesh: Mesh, trees: Trees):
    (call,) = mesh.call(mesh.root, "bash")
    mesh.run(steps.start_calls, call, [0])
    many = [(f"f{n}", "added", 1, 0) for n in range(2500)]
    mesh.run(steps.finish_calls, call, {0: {}}, None, {0: snapshots.entry(trees.tree(), trees.first, "refs/1", many)})
    found = mesh.run(snapshots.newest, trees.directory)
    assert found is not None
    assert (found.files, found.added) == (2500, 2500)
    assert mesh.one("select count(*) from agentmesh.changes") == snapshots.MOST
    assert violations(mesh.conn) == []


def test_what_an_agent_and_all_below_it_changed_by_file(mesh: Mesh, trees: Trees):
    child = trees.own(mesh.root, "child")
    below = trees.own(child, "below")
    trees.work(mesh.root, "a.txt", "b.txt")
    trees.work(child, "b.txt")
    trees.work(child, "b.txt")
    trees.work(below, "c.txt")
    rows = mesh.conn.execute(
        "select path, added, removed, tree_added, tree_removed, calls from agentmesh.v_changes"
        " where agent_id = %s order by path",
        [mesh.root],
    ).fetchall()
    assert rows == [("a.txt", 2, 1, 2, 1, 1), ("b.txt", 2, 1, 6, 3, 3), ("c.txt", 0, 0, 2, 1, 1)]
    totals = mesh.run(changes.totals, child)
    assert [(one.name, one.path, one.added, one.removed, one.snapshots) for one in totals] == [
        ("below", "c.txt", 2, 1, 1),
        ("child", "b.txt", 4, 2, 2),
    ]
    assert mesh.run(changes.totals, child, newest_row(mesh, child))[0].name == "below"


def test_old_refs_are_given_up_but_never_one_that_something_needs(mesh: Mesh, trees: Trees):
    child = trees.own(mesh.root, "child")  # its base is the first
    for n in range(5):
        trees.work(mesh.root, f"{n}.txt")
    over = mesh.run(snapshots.over, trees.directory, 2)
    assert len(over) == 3
    mesh.run(snapshots.freed, [one.snapshot_id for one in over])
    assert mesh.run(snapshots.over, trees.directory, 2) == []
    assert mesh.one("select count(*) from agentmesh.snapshots where freed_at is not null") == 3
    freed = mesh.column("select tree from agentmesh.snapshots where freed_at is not null")
    assert trees.of(child).base not in freed
    assert trees.head(mesh.root) not in freed


@pytest.mark.parametrize(
    "illegal", ["kind = 'other'", "kind = 'outside'", "seq = null", "agent_id = null", "tree = 'x'", "added = -1"]
)
def test_a_table_refuses_what_no_snapshot_may_be(mesh: Mesh, trees: Trees, illegal: str):
    trees.work(mesh.root, "a.txt")
    with pytest.raises(psycopg.errors.CheckViolation):
        mesh.conn.execute(f"update agentmesh.snapshots set {illegal} where kind = 'call'".encode())
