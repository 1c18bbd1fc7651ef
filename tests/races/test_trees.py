"""Races of merges, steps, kills and leases: who comes first decides, and a merge is whole or absent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentmesh.domain.errors import Fenced, MergeBusy, TreeMoved, WorkspaceInUse
from agentmesh.domain.ids import AgentId
from agentmesh.store import agents, leases, merges, snapshots, steps, workspaces
from agentmesh.store.errors import translated
from tests.fixtures.blocking import Stage
from tests.fixtures.invariants import violations
from tests.fixtures.mesh import Mesh
from tests.fixtures.trees import Trees

pytestmark = pytest.mark.only_rows


@pytest.fixture
def trees(mesh: Mesh) -> Iterator[Trees]:
    yield Trees(mesh)
    assert violations(mesh.conn) == []


@pytest.fixture
def child(mesh: Mesh, trees: Trees) -> AgentId:
    agent = trees.own(mesh.root, "child")
    trees.work(agent, "a.txt")
    return agent


def test_of_two_merges_into_one_tree_the_second_is_refused(mesh: Mesh, stage: Stage, trees: Trees, child: AgentId):
    other = trees.own(mesh.root, "other")
    trees.work(other, "b.txt")
    first, second = trees.plan(mesh.root, child), trees.plan(mesh.root, other)
    merges.begin(stage.holder, first)
    late = stage.meanwhile(lambda conn: merges.begin(conn, second), blocks=True)
    stage.holder.commit()
    with pytest.raises(MergeBusy), translated():
        late.result()


def test_two_merges_the_other_way_round(mesh: Mesh, stage: Stage, trees: Trees, child: AgentId):
    up, down = trees.plan(mesh.root, child), trees.plan(child, mesh.root)
    merges.begin(stage.holder, down)
    late = stage.meanwhile(lambda conn: merges.begin(conn, up), blocks=True)
    stage.holder.commit()
    with pytest.raises(MergeBusy), translated():
        late.result()


@pytest.mark.parametrize("whose", ["target", "source"])
def test_a_step_that_comes_first_makes_the_merge_look_again(
    mesh: Mesh, stage: Stage, trees: Trees, child: AgentId, whose: str
):
    agent = mesh.root if whose == "target" else child
    (call,) = mesh.call(agent, "bash")
    plan = trees.plan(mesh.root, child)
    steps.finish_calls(stage.holder, call, {0: {}}, None, {0: trees.entry(agent, "b.txt")})
    late = stage.meanwhile(lambda conn: merges.begin(conn, plan), blocks=True)
    stage.holder.commit()
    with pytest.raises(TreeMoved), translated():
        late.result()


def test_a_step_that_comes_before_the_end_of_the_merge_is_not_lost(
    mesh: Mesh, stage: Stage, trees: Trees, child: AgentId
):
    (call,) = mesh.call(mesh.root, "bash")
    begun = trees.begin(None, child)
    taken = trees.entry(mesh.root, "b.txt")
    steps.finish_calls(stage.holder, call, {0: {}}, None, {0: taken})
    late = stage.meanwhile(lambda conn: merges.end(conn, begun.id), blocks=True)
    stage.holder.commit()
    with pytest.raises(TreeMoved), translated():
        late.result()
    now = snapshots.entry(trees.tree(), taken["tree"], "refs/now")
    assert mesh.run(merges.end, begun.id, snapshot=now).state == "done"


def test_a_step_that_comes_after_the_end_begins_at_the_result(mesh: Mesh, stage: Stage, trees: Trees, child: AgentId):
    (call,) = mesh.call(mesh.root, "bash")
    begun = trees.begin(None, child)
    assert begun.result is not None
    taken = trees.entry(mesh.root, "b.txt", before=begun.result)
    merges.end(stage.holder, begun.id)
    step = stage.meanwhile(
        lambda conn: steps.finish_calls(conn, call, {0: {}}, None, {0: taken}),
        blocks=True,
    )
    stage.holder.commit()
    step.result()
    assert trees.head(mesh.root) == taken["tree"]


def test_a_kill_that_comes_first_leaves_the_merge_to_somebody(mesh: Mesh, stage: Stage, trees: Trees, child: AgentId):
    asker = mesh.fork(mesh.root, "asker", "work")
    (call,) = mesh.call(asker, "merge")
    begun = trees.begin(asker, child, lease=call)
    agents.kill(stage.holder, asker)
    late = stage.meanwhile(lambda conn: merges.end(conn, begun.id, call, result={}), blocks=True)
    stage.holder.commit()
    with pytest.raises(Fenced), translated():
        late.result()
    assert mesh.run(merges.end, begun.id, told_source="merged").state == "done"
    assert mesh.result(call) == {"error": "killed"}


def test_a_kill_of_the_source_in_that_instant(mesh: Mesh, stage: Stage, trees: Trees, child: AgentId):
    begun = trees.begin(None, child)
    agents.kill(stage.holder, child)
    late = stage.meanwhile(lambda conn: merges.end(conn, begun.id, told_source="merged"), blocks=True)
    stage.holder.commit()
    assert late.result().state == "done"
    assert mesh.one("select count(*) from agentmesh.mail where automatic") == 0, "nobody dead is told"


def test_a_merge_that_comes_first_is_told_before_the_turn_ends(mesh: Mesh, stage: Stage, trees: Trees, child: AgentId):
    begun, lease = trees.begin(mesh.root, child), mesh.begin(child)
    merges.end(stage.holder, begun.id, told_source="merged")
    end = stage.meanwhile(lambda conn: steps.finish_step(conn, lease, {"text": "done"}, [], {}), blocks=True)
    stage.holder.commit()
    assert end.result().status == "idle", "it need not do anything"
    assert mesh.unread(child) == []
    assert mesh.rows(child)[-1][1]["text"] == "merged"


def test_a_tree_is_not_removed_from_under_a_merge(mesh: Mesh, stage: Stage, trees: Trees, child: AgentId):
    plan = trees.plan(None, child)
    mesh.kill(child)
    merges.begin(stage.holder, plan)
    late = stage.meanwhile(lambda conn: workspaces.removing(conn, trees.of(child).id), blocks=True)
    stage.holder.commit()
    with pytest.raises(WorkspaceInUse), translated():
        late.result()


def test_a_fork_into_a_tree_that_is_about_to_go(mesh: Mesh, stage: Stage, trees: Trees, child: AgentId):
    """Only the living bring others into a tree: the kill comes first or the fork does."""
    agents.kill(stage.holder, child)
    fork = stage.meanwhile(lambda conn: agents.fork(conn, child, "late"), blocks=True)
    stage.holder.commit()
    with pytest.raises(Exception, match="is dead"):
        fork.result()
    mesh.run(workspaces.removing, trees.of(child).id)


def test_an_undo_looks_again_after_a_step(mesh: Mesh, stage: Stage, trees: Trees):
    (call,) = mesh.call(mesh.root, "bash")
    undo = snapshots.entry(trees.tree(), trees.first, "refs/u")
    steps.finish_calls(stage.holder, call, {0: {}}, None, {0: trees.entry(mesh.root, "a.txt")})
    late = stage.meanwhile(lambda conn: snapshots.record(conn, trees.directory, "undo", undo), blocks=True)
    stage.holder.commit()
    with pytest.raises(TreeMoved), translated():
        late.result()


@pytest.mark.parametrize("ends", [True, False])
def test_a_lease_is_free_as_soon_as_its_holder_is_at_rest(mesh: Mesh, stage: Stage, trees: Trees, ends: bool):
    mesh.run(leases.set_prefixes, mesh.session, ["src"])
    one, two = (mesh.begin(mesh.fork(mesh.root, name, "work")) for name in ("one", "two"))
    mesh.run(leases.take, one, "src/a")
    steps.finish_step(stage.holder, one, {"text": "done"}, [], {})
    take = stage.meanwhile(lambda conn: leases.take(conn, two, "src/b"), blocks=True)
    stage.holder.commit() if ends else stage.holder.rollback()
    found = take.result()
    assert found is not None
    assert (found.mine, found.name) == ((True, "two") if ends else (False, "one"))


def test_of_two_first_writers_one_holds_it(mesh: Mesh, stage: Stage, trees: Trees):
    mesh.run(leases.set_prefixes, mesh.session, ["src"])
    one, two = (mesh.begin(mesh.fork(mesh.root, name, "work")) for name in ("one", "two"))
    leases.take(stage.holder, one, "src/a")
    take = stage.meanwhile(lambda conn: leases.take(conn, two, "src/b"), blocks=True)
    stage.holder.commit()
    found = take.result()
    assert found is not None
    assert (found.mine, found.name) == (False, "one")
