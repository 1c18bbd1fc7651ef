"""A wait that would close a circle is refused at once; only unmet waits are its edges."""

from __future__ import annotations

import pytest

from agentmesh.domain.errors import WaitCircle
from agentmesh.domain.states import WaitOutcome
from tests.fixtures.mesh import Mesh

pytestmark = pytest.mark.only_rows


def test_two_agents_cannot_wait_for_each_other_and_the_circle_is_named(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    assert mesh.wait(mesh.root, a) is None
    call = mesh.call(a, "wait")[0]
    with pytest.raises(WaitCircle, match=r"a → root → a") as refused:
        mesh.wait(a, mesh.root, lease=call)
    assert refused.value.hint
    assert mesh.result(call) is None, "a refusal changes nothing"


def test_a_longer_circle_is_named_by_its_shortest_way(mesh: Mesh):
    names = "abcd"
    a, b, c, d = (mesh.fork(mesh.root, name, "work") for name in names)
    assert mesh.wait(a, b) is None
    assert mesh.wait(b, c, d) is None
    assert mesh.wait(c, d) is None
    with pytest.raises(WaitCircle, match=r": d → a → b → d$"):
        mesh.wait(d, a)


def test_an_agent_cannot_wait_for_itself(mesh: Mesh):
    with pytest.raises(WaitCircle, match="root → root"):
        mesh.wait(mesh.root, mesh.root)


def test_a_persons_wait_of_an_idle_agent_for_itself_is_refused_too(mesh: Mesh):
    a, idle, busy = mesh.fork(mesh.root, "a"), mesh.fork(mesh.root, "b"), mesh.fork(mesh.root, "c", "work")
    for targets in [(a,), (a, idle), (a, busy)]:
        with pytest.raises(WaitCircle, match="a → a"):
            mesh.person_waits(a, *targets)


def test_timeout_0_closes_no_circle(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    assert mesh.wait(mesh.root, a) is None
    result = mesh.wait(a, mesh.root, timeout=0)
    assert result is not None
    assert result["results"][0]["status"] == "running"


def test_a_wait_that_is_met_is_no_edge(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    assert mesh.wait(mesh.root, a) is None
    mesh.send(a, mesh.root, "here it is")
    assert mesh.wait(a, mesh.root) is None, "root can go on: its wait is met"


def test_a_report_does_not_meet_the_wait_for_a_running_agent(mesh: Mesh):
    child = mesh.fork(mesh.root, "child", "work", mesh.call(mesh.root, "fork")[0])
    mesh.answer(child, "report")
    mesh.send(mesh.root, child, "again")
    mesh.begin(child)
    assert mesh.wait(mesh.root, child) is None
    with pytest.raises(WaitCircle):
        mesh.wait(child, mesh.root)


def test_an_expired_wait_is_no_edge(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    assert mesh.wait(mesh.root, a) is None
    mesh.conn.execute("update agentmesh.wait set deadline = clock_timestamp() - interval '1 s'")
    assert mesh.wait(a, mesh.root) is None


def test_a_wait_that_ended_is_no_edge(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    assert mesh.wait(mesh.root, a) is None
    mesh.take(mesh.root, WaitOutcome.TIMEOUT)
    assert mesh.wait(a, mesh.root) is None


def test_a_dead_agent_on_the_way_breaks_the_circle(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    mesh.begin(mesh.root)
    assert mesh.wait(a, b) is None
    assert mesh.wait(b, mesh.root) is None
    mesh.kill(b)
    assert mesh.wait(mesh.root, a) is None


def test_a_circle_of_others_that_does_not_touch_the_waiter_is_impossible_and_a_diamond_is_none(mesh: Mesh):
    a, b, c = (mesh.fork(mesh.root, name, "work") for name in "abc")
    assert mesh.wait(mesh.root, a, b) is None
    assert mesh.wait(a, c) is None
    assert mesh.wait(b, c) is None


def test_a_dense_graph_is_searched_in_no_time(mesh: Mesh):
    """Every agent waits for all younger ones: 2^28 ways lead from the first to the last."""
    agents = [mesh.fork(mesh.root, f"a{n}", "work") for n in range(16)]
    agents += [mesh.fork(agents[0], f"b{n}", "work") for n in range(14)]
    for n, agent in enumerate(agents[:-1]):
        assert mesh.wait(agent, *agents[n + 1 :]) is None
    mesh.conn.execute("set statement_timeout = '10 s'")
    with pytest.raises(WaitCircle, match=r": b13 → a0 → b13$"):
        mesh.wait(agents[-1], agents[0])
