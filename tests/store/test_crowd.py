"""A session of more agents than a screen shows or a list tells: what is read of it, and that all can be reached."""

from __future__ import annotations

import pytest

from agentmesh.domain.ids import AgentId
from agentmesh.store import agents, board, workers
from agentmesh.store.tx import Database
from agentmesh.tui.session.reading import read_board
from tests.fixtures.mesh import Mesh

MANY = 1_200
IN_VIEW, NEIGHBOUR, BUSY = MANY - 300, MANY - 299, MANY - 5


def crowd(mesh: Mesh) -> dict[str, AgentId]:
    """Make a child of the root that has very many children, as fork does; return all of them by name."""
    mesh.conn.execute("update agentmesh.sessions set max_agents = 10000")
    lead = mesh.fork(mesh.root, "lead")
    mesh.conn.execute(
        "insert into agentmesh.agents (session_id, parent_id, name, depth, status, model, settings_id, forked_at,"
        " workspace_id)"
        " select session_id, id, 'm' || n, 2, 'idle', model, settings_id, 0, workspace_id"
        " from agentmesh.agents, generate_series(1, %s) n where id = %s order by n",
        [MANY, lead],
    )
    return {name: AgentId(id_) for id_, name in mesh.conn.execute("select id, name from agentmesh.agents")}


def test_a_screen_shows_some_of_very_many_agents_always_those_it_wants_and_who_works(mesh: Mesh):
    by_name = crowd(mesh)
    mesh.send(None, by_name[f"m{BUSY}"], "work")
    seen = mesh.run(board.agents, mesh.session, [by_name[f"m{IN_VIEW}"]])
    names = [one.view.name for one in seen]
    assert board.SOME <= len(seen) < MANY
    assert names[:3] == ["root", "lead", "m1"], "the oldest"
    assert {f"m{IN_VIEW}", f"m{NEIGHBOUR}", f"m{IN_VIEW - 1}", f"m{BUSY}"} <= set(names)
    assert names == sorted(names, key=list(by_name).index), "in the order of creation"
    assert mesh.run(board.working, mesh.session) == 1


def test_a_board_of_them_knows_that_it_is_not_whole_and_what_all_have_used(mesh: Mesh, db: Database):
    by_name = crowd(mesh)
    mesh.send(None, by_name[f"m{BUSY}"], "work")
    mesh.answer(by_name[f"m{BUSY}"], "done")
    mesh.send(None, by_name[f"m{BUSY}"], "more")
    seen = read_board(db, mesh.session, [by_name[f"m{IN_VIEW}"]])
    assert not seen.is_whole
    assert seen.working == 1
    assert [face.name for face in seen.children(mesh.root)] == ["lead"]
    assert seen.lineage(by_name[f"m{IN_VIEW}"]) == [by_name[f"m{IN_VIEW}"], by_name["lead"], mesh.root]
    whole = {view.id: view for view in mesh.run(agents.view, mesh.session)}[mesh.root]
    assert (seen.root.view.tree_tokens, seen.root.view.tree_cost_usd) == (whole.tree_tokens, whole.tree_cost_usd)


def test_a_small_board_is_whole(mesh: Mesh, db: Database):
    mesh.kill(mesh.fork(mesh.root, "dead"))
    seen = read_board(db, mesh.session)
    assert seen.is_whole
    assert [face.name for face in seen.faces.values()] == ["root", "dead"]


def test_a_page_has_the_oldest_of_the_living_the_newest_of_the_dead_and_all_ancestors(mesh: Mesh):
    by_name = crowd(mesh)
    below = mesh.fork(by_name["m7"], "below")
    for name in ("m3", f"m{MANY}", "m7"):
        mesh.kill(by_name[name])
    page = mesh.run(agents.page, mesh.session, 4, 2)
    assert [view.name for view in page] == ["root", "lead", "m1", "m2", "m7", "below"]
    assert page[-1].id == below
    assert page[-1].path == "root/lead/m7/below"
    assert {view.tree_tokens for view in page} == {None}
    assert [view.name for view in mesh.run(agents.page, mesh.session, 3)] == ["root", "lead", "m1"]


def test_a_limited_view_has_the_sums_over_whole_trees(mesh: Mesh):
    crowd(mesh)
    limited, whole = mesh.run(agents.view, mesh.session, 5), mesh.run(agents.view, mesh.session)
    assert limited == whole[:5]
    assert len(whole) == MANY + 2
    columns = "id, path, tree_tokens, tree_cost_usd"
    shown = mesh.conn.execute(
        f"select {columns} from agentmesh.v_agents where name in ('root', 'lead', 'm9')"
    ).fetchall()
    told = {view.id: (view.path, view.tree_tokens, view.tree_cost_usd) for view in whole}
    assert {id_: rest for id_, *rest in shown} == {id_: list(told[id_]) for id_, *_ in shown}


def test_list_agents_tells_of_the_caller_its_parent_and_its_children_first(mesh: Mesh):
    by_name = crowd(mesh)
    me = by_name[f"m{IN_VIEW}"]
    mesh.fork(me, "mine")
    listed = mesh.run(agents.list_agents, mesh.session, me, 6)
    assert [one["name"] for one in listed] == ["root", "lead", "m1", "m2", f"m{IN_VIEW}", "mine"]


def test_list_agents_leaves_out_the_dead_and_finished_tasks_which_take_no_place(mesh: Mesh):
    lead = mesh.fork(mesh.root, "lead")
    me, dead, *done = (mesh.fork(lead, name) for name in ("me", "dead", "done", "done-2", "done-3"))
    mesh.fork(me, "mine")
    mesh.fork(mesh.root, "late")
    mesh.kill(dead)
    mesh.conn.execute("update agentmesh.agents set clean = true where id = any (%s)", [[lead, *done]])
    listed = mesh.run(agents.list_agents, mesh.session, me, 4)
    shown = [("root", None), ("me", "lead"), ("mine", "me"), ("late", "root")]
    assert [(one["name"], one["parent"]) for one in listed] == shown


def test_list_agents_reads_what_they_do_once_not_for_each_of_them(mesh: Mesh):
    by_name = crowd(mesh)
    mesh.conn.execute(
        "insert into agentmesh.activity (agent_id, activity) select id, 'thinking' from agentmesh.agents limit 60"
    )
    mesh.conn.execute("vacuum analyze")
    with mesh.conn.transaction():
        assert len(mesh.run(agents.list_agents, mesh.session, by_name["lead"], 201)) == 201
        read = mesh.one("select seq_tup_read + idx_tup_fetch from pg_stat_xact_user_tables where relname = 'activity'")
    assert read < 2 * 60, "each of the 60 rows, and what the planner looks up"


@pytest.mark.parametrize("who", ["m900", "id", "prefix"])
def test_each_of_them_is_found(mesh: Mesh, who: str):
    id_ = crowd(mesh)["m900"]
    asked = {"id": str(id_), "prefix": str(id_)[:13]}.get(who, who)
    assert mesh.run(agents.resolve, mesh.session, asked).id == id_


def test_a_worker_is_told_at_once_which_of_those_it_took_over_are_in_no_wait(mesh: Mesh):
    waiting, other = mesh.fork(mesh.root, "waiting"), mesh.fork(mesh.root, "other")
    mesh.wait(waiting)
    assert mesh.run(workers.not_waiting, [waiting, other]) == [other]
