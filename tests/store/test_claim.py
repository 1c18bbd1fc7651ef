"""claim, release and tick: who may run which agent, and that nobody keeps what he lost."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from agentmesh.domain.errors import Fenced
from agentmesh.domain.ids import AgentId, WorkerId
from agentmesh.domain.rows import Attention
from agentmesh.domain.states import AgentStatus, WaitOutcome
from agentmesh.store import agents, steps, workers
from tests.fixtures.mesh import Mesh

pytestmark = pytest.mark.only_rows


def test_the_longest_queued_come_first_and_no_more_than_asked(mesh: Mesh):
    queued = [mesh.fork(mesh.root, f"a{n}", "work") for n in range(4)]
    assert mesh.claim(3) == queued[:3]
    assert mesh.run(workers.claimable, mesh.worker, 1)
    assert mesh.claim(3) == queued[3:]
    assert not mesh.run(workers.claimable, mesh.worker, 1)
    assert mesh.claim(3) == []


def test_17_2_a_claim_is_in_the_order_of_the_queue(mesh: Mesh):
    crowd = [mesh.fork(mesh.root, f"a{n}") for n in range(12)]
    order = [crowd[n] for n in (7, 2, 11, 0, 5, 9, 1, 10, 3, 8, 4, 6)]
    for agent in order:
        mesh.send(None, agent)
    assert mesh.claim(5) == order[:5]
    assert mesh.claim() == order[5:]


def test_agents_inside_a_wait_need_no_slot_and_are_left_out_where_they_are_not_asked_for(mesh: Mesh):
    waiter, target, other = (mesh.fork(mesh.root, name, "work") for name in ("waiter", "target", "other"))
    mesh.wait(waiter, target)
    mesh.claim(3)
    mesh.run(workers.release, mesh.worker)
    me = mesh.join()
    assert {agent.id for agent in mesh.run(workers.claim, me, 3, waits=False)} == {target, other}
    assert mesh.run(workers.claim, me, 3, waits=False) == []
    assert mesh.run(workers.claimable, me, 0), "it is still there"
    assert [agent.id for agent in mesh.run(workers.claim, me, 0)] == [waiter]


def test_each_claim_raises_the_epoch(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    (claimed,) = mesh.run(workers.claim, mesh.worker, 1)
    assert (claimed.id, claimed.worker_id, claimed.epoch, claimed.status) == (a, mesh.worker, 1, AgentStatus.RUNNING)
    mesh.answer(a)
    mesh.send(None, a)
    (again,) = mesh.run(workers.claim, mesh.worker, 1)
    assert again.epoch == 2


def test_idle_dead_and_owned_agents_are_not_claimed(mesh: Mesh):
    mesh.fork(mesh.root, "idle")
    mesh.kill(mesh.fork(mesh.root, "dead", "work"))
    owned = mesh.fork(mesh.root, "owned", "work")
    assert mesh.claim() == [owned]
    assert mesh.claim(worker=mesh.join()) == []


def test_an_external_agent_is_never_claimed_and_mail_wakes_no_worker_for_it(mesh: Mesh):
    a = mesh.fork(mesh.root, "a")
    mesh.conn.execute("update agentmesh.agents set external = true, status = 'running', turn = 1 where id = %s", [a])
    mesh.send(None, a)
    assert mesh.claim() == []
    assert not mesh.run(workers.claimable, mesh.worker, 1)


@pytest.mark.parametrize(
    ("identity", "may"),
    [
        ({}, True),
        ({"providers": ("openai", "demo")}, True),
        ({"providers": ("openai",)}, False),
        ({"providers": ()}, False),
        ({"host": "elsewhere"}, False),
        ({"os_user": "somebody"}, False),
        ({"host": "elsewhere", "os_user": "somebody", "serves_any": True}, True),
        ({"serves_any": True, "providers": ("openai",)}, False),
    ],
)
def test_a_worker_serves_its_host_user_and_providers(mesh: Mesh, identity: dict[str, Any], may: bool):
    a = mesh.fork(mesh.root, "a", "work")
    worker = mesh.join(**identity)
    assert mesh.run(workers.claimable, worker, 1) is may
    assert mesh.run(workers.serving, mesh.session, "demo") is True, "the mesh's own worker"
    assert mesh.claim(worker=worker) == ([a] if may else [])


def test_a_worker_of_one_session_serves_no_other(mesh: Mesh):
    mine, other = mesh.fork(mesh.root, "a", "work"), mesh.new_session()
    mesh.send(None, other, "work")
    assert mesh.claim(worker=mesh.join(session=mesh.session)) == [mine]
    assert mesh.claim() == [other]


def test_agents_inside_a_wait_come_on_top(mesh: Mesh):
    waiting = [mesh.fork(mesh.root, f"w{n}", "work") for n in range(3)]
    for agent in waiting:
        assert mesh.wait(agent) is None
    mesh.run(workers.release, mesh.worker)
    queued = [mesh.fork(mesh.root, f"q{n}", "work") for n in range(2)]
    worker = mesh.join()
    assert mesh.run(workers.claimable, worker, 0)
    assert set(mesh.claim(1, worker)) == {queued[0], *waiting}
    assert not mesh.run(workers.claimable, worker, 0)
    assert mesh.run(workers.claimable, worker, 1)


def test_release_frees_all_its_agents_at_once_and_fences_it(mesh: Mesh):
    for name in "ab":
        mesh.fork(mesh.root, name, "work")
    claimed = mesh.claim()
    leases = [mesh.lease(agent) for agent in claimed]
    assert mesh.run(workers.release, mesh.worker) == 2
    assert mesh.run(workers.release, mesh.worker) == 0
    for lease in leases:
        with pytest.raises(Fenced):
            mesh.run(steps.begin_step, lease, 0)
    with pytest.raises(Fenced, match="declared dead"):
        mesh.claim()
    assert set(mesh.claim(worker=mesh.join())) == set(claimed)
    assert mesh.run(agents.get, claimed[0]).epoch == leases[0].epoch + 2


def test_an_unknown_worker_claims_nothing(mesh: Mesh):
    with pytest.raises(Fenced):
        mesh.claim(worker=WorkerId(999))


def test_release_tells_the_other_workers(mesh: Mesh, database_url: str):
    mesh.fork(mesh.root, "a", "work")
    mesh.claim()
    with psycopg.connect(database_url, autocommit=True) as listener:
        listener.execute("listen agentmesh_work")
        mesh.run(workers.release, mesh.worker)
        (heard,) = listener.notifies(timeout=10, stop_after=1)
    assert heard.payload == str(mesh.session)


def tick(mesh: Mesh, *agent_ids) -> list[tuple[AgentId | None, str]]:
    epochs = {agent: mesh.lease(agent).epoch for agent in agent_ids}
    return sorted((seen.agent_id, seen.what) for seen in mesh.run(workers.tick, mesh.worker, epochs))


def test_a_tick_sees_nothing_where_nothing_is_to_do(mesh: Mesh):
    a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
    mesh.begin(a)
    assert mesh.wait(b, a) is None
    mesh.send(mesh.root, b, "not awaited")
    assert tick(mesh, a, b) == []


def test_a_tick_finds_an_interrupt_and_agents_that_are_lost(mesh: Mesh):
    a, killed, taken = (mesh.fork(mesh.root, name, "work") for name in ("a", "killed", "taken"))
    epochs = {agent: mesh.begin(agent).epoch for agent in (a, killed, taken)}
    mesh.interrupt(a)
    mesh.kill(killed)
    mesh.conn.execute("update agentmesh.agents set epoch = epoch + 1 where id = %s", [taken])
    seen = {each.agent_id: each.what for each in mesh.run(workers.tick, mesh.worker, epochs)}
    assert seen == {a: "interrupt", killed: "lost", taken: "lost"}


@pytest.mark.parametrize("event", ["message", "idle", "dead", "user", "deadline"])
def test_a_tick_finds_a_wait_that_can_end(mesh: Mesh, event: str):
    a = mesh.fork(mesh.root, "a", "work")
    assert mesh.wait(mesh.root, a) is None
    assert tick(mesh, mesh.root) == []
    match event:
        case "message":
            mesh.send(a, mesh.root)
        case "idle":
            mesh.answer(a)
        case "dead":
            mesh.kill(a)
        case "user":
            mesh.send(None, mesh.root)
        case "deadline":
            mesh.conn.execute("update agentmesh.wait set deadline = clock_timestamp()")
    assert tick(mesh, mesh.root) == [(mesh.root, "wait")]
    assert mesh.take(mesh.root, WaitOutcome.TIMEOUT if event == "deadline" else None) is not None
    assert tick(mesh, mesh.root) == []


def test_a_tick_finds_mail_for_a_wait_for_anyone(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    assert mesh.wait(mesh.root) is None
    mesh.answer(a)
    assert tick(mesh, mesh.root) == []
    mesh.send(a, mesh.root)
    assert tick(mesh, mesh.root) == [(mesh.root, "wait")]


def test_a_tick_of_a_worker_declared_dead_says_so(mesh: Mesh):
    mesh.run(workers.release, mesh.worker)
    assert mesh.run(workers.tick, mesh.worker, {}) == [Attention(None, "fenced")]


def test_a_tick_tells_of_work_that_can_be_claimed(mesh: Mesh):
    mesh.fork(mesh.root, "a", "work")
    assert mesh.run(workers.tick, mesh.worker, {}) == [Attention(None, "work")]
    mesh.claim()
    assert mesh.run(workers.tick, mesh.worker, {}) == []


def test_a_tick_is_a_heartbeat(mesh: Mesh):
    mesh.conn.execute("update agentmesh.workers set seen_at = '2020-01-01', lost_at = '2020-01-01'")
    assert not mesh.run(workers.serving, mesh.session, "demo")
    tick(mesh)
    assert mesh.run(workers.serving, mesh.session, "demo")
    (alive,) = mesh.run(workers.alive)
    assert (alive["id"], alive["agents"]) == (mesh.worker, 0)


@pytest.mark.parametrize(
    ("offers", "may"),
    [((), False), (("tool x",), False), (("tool x", "type y"), True), (("tool x", "type y", "tool z"), True)],
)
def test_a_session_is_served_by_those_who_offer_all_that_it_needs(mesh: Mesh, offers: tuple[str, ...], may: bool):
    mesh.conn.execute("update agentmesh.sessions set needs = '{tool x,type y}' where id = %s", [mesh.session])
    a = mesh.fork(mesh.root, "a", "work")
    worker = mesh.join(offers=offers)
    assert mesh.run(workers.serving, mesh.session, "demo") is may
    assert mesh.claim(worker=worker) == ([a] if may else [])
