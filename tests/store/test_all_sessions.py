"""What needs a person is found whatever the number of younger sessions."""

from __future__ import annotations

import pytest

from agentmesh.store import board, requests, steps
from tests.fixtures.mesh import Mesh

pytestmark = pytest.mark.only_rows

YOUNGER = 12


@pytest.fixture
def old(mesh: Mesh) -> dict[str, object]:
    """One agent of each kind in the oldest session; then many younger sessions."""
    asking, failed, idle = (mesh.fork(mesh.root, name, "work") for name in ("asking", "failed", "idle"))
    mesh.answer(idle)
    mesh.ask(asking)
    mesh.run(steps.fail_turn, mesh.begin(failed), {"error": "no answer"})
    spent = mesh.fork(mesh.root, "spent", "work")
    mesh.run(steps.fail_turn, mesh.begin(spent), {"error": "no room", "kind": "limit"})
    for _ in range(YOUNGER):
        mesh.new_session()
    return {"asking": asking, "failed": failed, "spent": spent}


def test_the_board_of_all_finds_who_asks_runs_or_failed_in_an_old_session(mesh: Mesh, old: dict[str, object]):
    working = mesh.fork(mesh.root, "working", "work")
    found = {one.view.id for one in mesh.run(board.everywhere, 5, 5) if one.view.session_id == mesh.session}
    assert found == {*old.values(), working}


def test_of_sessions_at_rest_only_the_newest_are_there(mesh: Mesh, old: dict[str, object]):
    roots = [one for one in mesh.run(board.everywhere, 5, 5) if one.view.name == "root"]
    assert len(roots) == 5


def test_the_newest_sessions_are_there_however_many_others_have_failed(mesh: Mesh):
    roots = [mesh.root, *(mesh.new_session() for _ in range(4))]
    for root in roots:
        mesh.run(steps.fail_turn, mesh.begin(root), {"error": "no answer"})
        mesh.fork(root, "helper", "work")
    shown = {one.view.name + str(one.view.session_id) for one in mesh.run(board.everywhere, 5, 5, 1)}
    assert len(shown) == 10


def test_each_old_session_has_only_a_few_of_a_kind(mesh: Mesh, old: dict[str, object]):
    for n in range(4):
        mesh.fork(mesh.root, f"worker-{n}", "work")
    running = [one for one in mesh.run(board.everywhere, 5, 2) if one.view.name.startswith("worker-")]
    assert len(running) == 2


def test_requests_of_all_sessions_are_found_oldest_first(mesh: Mesh, old: dict[str, object]):
    young = mesh.new_session()
    mesh.ask(young)
    assert [one.agent_id for one in mesh.run(requests.everywhere)] == [old["asking"], young]


def test_agents_of_an_ended_session_are_not(mesh: Mesh, old: dict[str, object]):
    mesh.conn.execute("select agentmesh.end_session(%s)", [mesh.session])
    assert mesh.run(requests.everywhere) == []
    assert [one for one in mesh.run(board.everywhere, 5, 5) if one.view.session_id == mesh.session] == []
