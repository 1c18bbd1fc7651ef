"""Merges: all of it in one commit or nothing, and the tree that both sides have in common afterwards."""

from __future__ import annotations

import psycopg
import pytest

from agentmesh.domain.errors import Fenced, MergeBusy, MergeOver, NotMergeable, OtherSession, TreeMoved
from agentmesh.domain.ids import AgentId
from agentmesh.store import agents, leases, mailbox, merges, snapshots, travel, workspaces
from tests.fixtures.invariants import violations
from tests.fixtures.mesh import HOST, USER, Mesh
from tests.fixtures.trees import Trees

pytestmark = pytest.mark.only_rows


@pytest.fixture
def trees(mesh: Mesh) -> Trees:
    return Trees(mesh)


@pytest.fixture
def child(mesh: Mesh, trees: Trees) -> AgentId:
    """An agent with a tree of its own in which it has changed a file."""
    agent = trees.own(mesh.root, "child")
    trees.work(agent, "a.txt")
    return agent


def mail(mesh: Mesh, agent: AgentId) -> list[tuple[str, bool]]:
    rows = mesh.conn.execute(
        "select body, automatic from agentmesh.mail where recipient = %s and body <> 'work' order by id", [agent]
    )
    return rows.fetchall()


def test_a_merge_up_is_one_commit(mesh: Mesh, trees: Trees, child: AgentId):
    mesh.answer(child)
    (call,) = mesh.call(mesh.root, "merge")
    theirs = trees.head(child)
    done = trees.merge(mesh.root, child, "a.txt", lease=call)
    assert (done.state, done.is_up, done.theirs, done.by_agent) == ("done", True, theirs, mesh.root)
    assert trees.head(mesh.root) == done.result
    assert trees.of(child).base == theirs, "what both have in common now"
    assert trees.head(child) == theirs, "the source stays as it was"
    shown = mesh.run(snapshots.newest, trees.directory)
    assert shown is not None
    assert (shown.kind, shown.agent_id, shown.merge_id, shown.files) == ("merge", child, done.id, 1)
    assert mesh.result(call) == {"merged": ["a.txt"]}
    assert mail(mesh, child) == [("merged", True)]
    assert mesh.status(child) == "idle", "it is told, and not woken"
    assert mesh.rows(child)[-1][1]["quiet"] is True
    assert mesh.rows(child)[-1][1]["about"] == "merge", "and it is no report"
    assert ("merged", True) not in mail(mesh, mesh.root), "who asked has the result"
    assert mesh.context(child)[-1][0] == "mail", "its model is sent it with its next turn"
    assert mesh.run(travel.tree_at, mesh.session, mesh.run(travel.now))[1].view.status == "idle"
    assert violations(mesh.conn) == []


def test_a_tree_is_marked_as_merged_until_it_has_something_new(mesh: Mesh, trees: Trees, child: AgentId):
    def marked() -> set[bool]:
        seen = [*mesh.run(agents.view, mesh.session), *mesh.run(agents.page, mesh.session, 10)]
        listed = mesh.run(workspaces.listing, mesh.session, own_only=True)
        return {one.merged for one in seen if one.id == child} | {one.merged for one in listed}

    assert marked() == {False}, "its work is not merged yet"
    merge = trees.merge(mesh.root, child, "a.txt")
    assert marked() == {True}
    trees.work(child, "b.txt")
    assert marked() == {False}
    trees.merge(mesh.root, child, "b.txt")
    assert marked() == {True}
    assert {one.merged for one in mesh.run(agents.view, mesh.session) if one.id == mesh.root} == {False}
    assert merge.state == "done"


def test_mail_of_a_merge_is_told_from_a_report_and_takes_no_key_of_anyone(mesh: Mesh, trees: Trees, child: AgentId):
    for key in ("merge", "merge 1"):
        mesh.run(mailbox.send, child, mesh.root, f"under {key}", key)
    for path in ("a.txt", "b.txt"):
        trees.work(child, path)
        trees.merge(mesh.root, child, path)
    mesh.send(mesh.root, child, "report")
    mesh.answer(child)
    mesh.answer(child, "my report")
    mesh.begin(mesh.root)
    shown = [
        (row["text"], row.get("automatic"), row.get("about")) for kind, row in mesh.rows(mesh.root) if kind == "mail"
    ]
    assert [one for one in shown if one[0] == "merged"] == [("merged", True, "merge")] * 2
    assert ("my report", True, None) in shown
    assert ("under merge 1", None, None) in shown
    assert violations(mesh.conn) == []


def test_news_of_a_merge_is_no_output_of_an_agent_and_ends_no_wait(mesh: Mesh, trees: Trees, child: AgentId):
    mesh.send(None, child, "go")
    assert mesh.wait(mesh.root) is None, "a wait for anyone"
    trees.work(child, "a.txt")
    mesh.run(merges.end, mesh.run(merges.begin, trees.plan(None, child)).id, told_target="merged")
    assert mesh.take(mesh.root) is None
    mesh.send(child, mesh.root, "hello")
    result = mesh.take(mesh.root)
    assert result is not None
    (entry,) = result["results"]
    assert (entry["message"], entry.get("output"), entry.get("more")) == ("hello", None, None)


def test_news_of_a_merge_begin_no_turn_and_are_rows_when_the_turn_ends(mesh: Mesh, trees: Trees, child: AgentId):
    mesh.begin(child)
    trees.work(child, "a.txt")
    turn = mesh.one("select turn from agentmesh.agents where id = %s", child)
    trees.merge(mesh.root, child, "a.txt")
    assert mesh.unread(child) == ["merged"], "it works"
    assert mesh.answer(child) == "idle"
    assert mesh.unread(child) == []
    assert mesh.one("select turn from agentmesh.agents where id = %s", child) == turn
    kind, content = mesh.rows(child)[-1]
    assert (kind, content["about"], content["quiet"]) == ("mail", "merge", True)
    assert violations(mesh.conn) == []


def test_the_same_call_again_finishes_what_it_began(mesh: Mesh, trees: Trees, child: AgentId):
    (call,) = mesh.call(mesh.root, "merge")
    assert call.seq is not None
    plan = trees.plan(mesh.root, child, "a.txt")
    begun = mesh.run(merges.begin, plan, call)
    assert mesh.run(merges.begin, plan, call) == begun
    assert call.seq is not None
    assert mesh.run(merges.of_call, mesh.root, call.seq, 0) == begun
    assert mesh.run(merges.unfinished, HOST, USER) == [begun]
    done = [mesh.run(merges.end, begun.id, call, result={"merged": True}) for _ in range(2)]
    assert done[0] == done[1]
    assert mesh.run(merges.begin, plan, call) == done[0]
    assert mesh.run(merges.unfinished, HOST, USER) == []
    with pytest.raises(MergeOver):
        mesh.run(merges.refused, begun.id, "no")
    assert [one.kind for one in mesh.run(snapshots.since, trees.directory, 0)].count("merge") == 1
    assert violations(mesh.conn) == []


def test_a_person_may_repeat_it_too(mesh: Mesh, trees: Trees, child: AgentId):
    plan = trees.plan(None, child, "a.txt")
    begun = mesh.run(merges.begin, plan)
    assert mesh.run(merges.begin, plan) == begun
    with pytest.raises(MergeBusy):
        trees.begin(None, child)
    assert begun.target == trees.directory
    assert mesh.run(merges.above, child) == mesh.root
    mesh.run(merges.end, begun.id, told_source="merged", told_target="merged")
    assert trees.of(child).base == plan.theirs


def test_whoever_finds_it_unfinished_ends_it_and_the_call_finds_it_done(mesh: Mesh, trees: Trees, child: AgentId):
    (call,) = mesh.call(mesh.root, "merge")
    plan = trees.plan(mesh.root, child, "a.txt")
    begun = mesh.run(merges.begin, plan, call)
    done = mesh.run(merges.end, begun.id)
    assert mesh.result(call) is None, "only its owner writes the result"
    assert mesh.run(merges.begin, plan, call) == done


def test_a_merge_of_older_trees_is_refused_and_repeated(mesh: Mesh, trees: Trees, child: AgentId):
    for moved in (mesh.root, child):
        plan = trees.plan(mesh.root, child)
        trees.work(moved, "b.txt")
        with pytest.raises(TreeMoved):
            mesh.run(merges.begin, plan)
    plan = trees.plan(mesh.root, child)
    trees.merge(mesh.root, child)
    with pytest.raises(TreeMoved):
        mesh.run(merges.begin, plan)


def test_a_step_of_the_target_while_it_is_written_is_not_lost(mesh: Mesh, trees: Trees, child: AgentId):
    begun = trees.begin(None, child, "a.txt")
    meanwhile = trees.work(mesh.root, "b.txt")
    with pytest.raises(TreeMoved):
        mesh.run(merges.end, begun.id)
    now = snapshots.entry(trees.tree(), meanwhile, "refs/now", [("a.txt", "changed", 1, 1)])
    assert mesh.run(merges.end, begun.id, snapshot=now).state == "done"
    assert trees.head(mesh.root) == now["tree"]
    assert violations(mesh.conn) == []


def test_a_refusal_changes_nothing_and_wakes_the_owner(mesh: Mesh, trees: Trees, child: AgentId):
    mesh.answer(child)
    before = trees.of(mesh.root), trees.of(child)
    (call,) = mesh.call(mesh.root, "merge")
    plan = trees.plan(mesh.root, child)
    conflicts = [{"path": "a.txt", "ours": "1", "theirs": "2"}]
    answer = {"error": "a.txt conflicts"}
    for _ in range(2):
        one = mesh.run(merges.refused, plan, "conflicts", conflicts, call, result=answer, told="mend a.txt")
    assert (one.state, one.reason, one.conflicts) == ("refused", "conflicts", conflicts)
    assert (trees.of(mesh.root), trees.of(child)) == before
    assert mail(mesh, child) == [("mend a.txt", False)], "once"
    assert mesh.status(child) == "running"
    assert mesh.result(call) == answer
    assert mesh.one("select owes_report from agentmesh.agents where id = %s", child) is False
    mesh.begin(child)
    assert mesh.one("select owes_report from agentmesh.agents where id = %s", child) is True, (
        "it reports when it is done"
    )
    with pytest.raises(MergeOver):
        mesh.run(merges.end, one.id)
    assert violations(mesh.conn) == []


def test_a_person_is_refused_once_for_the_same_trees(mesh: Mesh, trees: Trees, child: AgentId):
    plan = trees.plan(None, child)
    first = mesh.run(merges.refused, plan, "conflicts", told="mend it")
    assert mesh.run(merges.refused, plan, "conflicts", told="mend it") == first
    begun = trees.begin(None, child)
    assert mesh.run(merges.refused, begun.id, "check").state == "refused"
    assert len(mesh.run(merges.listing, mesh.session)) == 2
    assert mail(mesh, child) == [("mend it", False)]


def test_a_merge_down_moves_the_base_to_what_the_origin_has(mesh: Mesh, trees: Trees, child: AgentId):
    news = trees.work(mesh.root, "b.txt")
    (call,) = mesh.call(child, "merge")
    done = trees.merge(child, mesh.root, "b.txt", lease=call)
    assert (done.is_up, done.theirs) == (False, news)
    assert (trees.of(child).base, trees.head(child)) == (news, done.result)
    assert trees.head(mesh.root) == news
    assert mail(mesh, mesh.root)[-1:] == [("merged", True)]
    plan = trees.plan(child, mesh.root)
    mesh.run(merges.refused, plan, "check", told="never read")
    assert mail(mesh, child)[-1:] == [("never read", False)], "a person asked, so the owner of the tree is told"
    assert violations(mesh.conn) == []


def test_only_a_tree_and_the_one_that_it_was_made_from_can_be_merged(mesh: Mesh, trees: Trees, child: AgentId):
    grandchild = trees.own(child, "grandchild")
    sibling = trees.own(mesh.root, "sibling")
    same = mesh.fork(child, "same")
    planned = mesh.run(agents.fork, mesh.root, "planned", workspace="own")
    for target, source in (
        (mesh.root, grandchild),
        (sibling, child),
        (child, same),
        (mesh.root, mesh.root),
        (None, mesh.root),
        (mesh.root, planned),
        (planned, mesh.root),
    ):
        with pytest.raises(NotMergeable):
            mesh.run(merges.sides, target, source)
    with pytest.raises(OtherSession):
        mesh.run(merges.sides, mesh.new_session(), child)
    assert mesh.run(merges.sides, same, grandchild).is_up, "by the files, whoever works there"
    assert mesh.run(merges.above, grandchild) == child


def test_an_origin_that_was_removed_counts_as_its_own(mesh: Mesh, trees: Trees, child: AgentId):
    grandchild = trees.own(child, "grandchild")
    trees.work(grandchild, "c.txt")
    mesh.kill(child)
    mesh.run(workspaces.removing, trees.of(child).id)
    mesh.run(workspaces.removed, trees.of(child).id)
    assert mesh.run(merges.sides, mesh.root, grandchild).target == trees.directory
    done = trees.merge(mesh.root, grandchild, "c.txt")
    assert done.state == "done", "the dead's work is not lost"
    assert mail(mesh, grandchild) == []
    late = trees.merge(mesh.root, child, "a.txt")
    assert late.state == "done", "nor that of a tree that is gone: its last snapshot is left"
    assert violations(mesh.conn) == []


def test_an_undone_merge_can_be_merged_again_and_redone(mesh: Mesh, trees: Trees, child: AgentId):
    before, base = trees.head(mesh.root), trees.of(child).base
    done = trees.merge(mesh.root, child, "a.txt")
    snapshot = mesh.run(snapshots.newest, trees.directory)
    assert snapshot is not None
    assert [one.id for one in mesh.run(merges.into, trees.directory, snapshot.id - 1)] == [done.id]
    assert mesh.run(merges.into, trees.directory, snapshot.id) == []
    undo = trees.undo(mesh.root, before, [done.id])
    assert trees.of(child).base == base
    assert [one.state for one in mesh.run(merges.undone_by, undo)] == ["undone"]
    assert mesh.run(merges.into, trees.directory) == []
    assert violations(mesh.conn) == []
    assert done.result is not None
    trees.undo(mesh.root, done.result, [done.id], kind="redo")
    assert trees.of(child).base == done.theirs
    assert mesh.run(merges.get, done.id) == done
    assert violations(mesh.conn) == []


def test_two_merges_undone_one_by_one_and_out_of_order(mesh: Mesh, trees: Trees, child: AgentId):
    base = trees.of(child).base
    first = trees.merge(mesh.root, child, "a.txt")
    trees.work(child, "b.txt")
    second = trees.merge(mesh.root, child, "b.txt")
    assert first.result
    assert second.result
    trees.undo(mesh.root, trees.tree(), [first.id])
    assert trees.of(child).base == second.theirs, "the later one still stands"
    trees.undo(mesh.root, first.result, [first.id], kind="redo")
    trees.undo(mesh.root, trees.first, [first.id, second.id])
    assert trees.of(child).base == base, "both at once: the newest first"
    trees.undo(mesh.root, second.result, [second.id, first.id], kind="redo")
    assert trees.of(child).base == second.theirs
    assert violations(mesh.conn) == []


def test_a_merge_ends_the_leases_of_whose_work_it_was(mesh: Mesh, trees: Trees, child: AgentId):
    mesh.run(leases.set_prefixes, mesh.session, ["src"])
    trees.merge(mesh.root, child)
    helper = mesh.fork(mesh.root, "helper", "work")
    assert mesh.run(leases.take, mesh.begin(helper), "src/x").mine  # type: ignore[union-attr]
    trees.merge(child, helper)
    assert mesh.run(leases.held, trees.directory) == []
    assert violations(mesh.conn) == []


def test_a_lost_lease_ends_no_merge(mesh: Mesh, trees: Trees, child: AgentId):
    asker = mesh.fork(mesh.root, "asker", "work")
    (call,) = mesh.call(asker, "merge")
    begun = trees.begin(asker, child, lease=call)
    mesh.kill(asker)
    with pytest.raises(Fenced):
        mesh.run(merges.end, begun.id, call, result={})
    assert mesh.run(merges.end, begun.id).state == "done", "its files are written: somebody ends it"
    assert violations(mesh.conn) == []


def test_while_one_is_written_its_trees_stay(mesh: Mesh, trees: Trees, child: AgentId):
    begun = trees.begin(mesh.root, child)
    with pytest.raises(MergeBusy):
        trees.begin(child, mesh.root)
    mesh.kill(child)
    with pytest.raises(Exception, match="a merge with it is being written"):
        mesh.run(workspaces.removing, trees.of(child).id)
    mesh.run(merges.end, begun.id)
    mesh.run(workspaces.removing, trees.of(child).id)


@pytest.mark.parametrize(
    "illegal", ["state = 'lost'", "source = target", "result = null", "reason = 'x'", "ended_at = null", "seq = 1"]
)
def test_a_table_refuses_what_no_merge_may_be(mesh: Mesh, trees: Trees, child: AgentId, illegal: str):
    trees.merge(mesh.root, child)
    with pytest.raises(psycopg.errors.CheckViolation):
        mesh.conn.execute(f"update agentmesh.merges set {illegal}".encode())


def test_people_see_them(mesh: Mesh, trees: Trees, child: AgentId):
    trees.merge(None, child, "a.txt")
    seen = mesh.conn.execute("select source_name, target_name, by_name, state, files from agentmesh.v_merges")
    assert seen.fetchall() == [("child", None, "user", "done", 1)]
