"""give_back: agents for which their worker has no thread are claimable by others, if there are others."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from agentmesh.domain.errors import Fenced
from agentmesh.domain.ids import AgentId, WorkerId
from agentmesh.domain.states import AgentStatus
from agentmesh.store import agents, steps, workers
from agentmesh.store.errors import translated
from tests.fixtures.blocking import Stage
from tests.fixtures.mesh import Mesh

pytestmark = pytest.mark.only_rows


@pytest.fixture
def owned(mesh: Mesh) -> AgentId:
    """An agent that the mesh's worker owns."""
    agent = mesh.fork(mesh.root, "a", "work")
    assert mesh.claim() == [agent]
    return agent


def give_back(mesh: Mesh, *offered: AgentId) -> set[AgentId]:
    return mesh.run(workers.give_back, mesh.worker, {agent: mesh.lease(agent).epoch for agent in offered})


def owner(mesh: Mesh, agent: AgentId) -> tuple[WorkerId | None, int]:
    found = mesh.conn.execute("select worker_id, epoch from agentmesh.agents where id = %s", [agent]).fetchone()
    assert found
    return found


def test_it_becomes_claimable_and_its_old_lease_is_fenced(mesh: Mesh, owned: AgentId, database_url: str):
    other, lease = mesh.join(), mesh.lease(owned)
    with psycopg.connect(database_url, autocommit=True) as listener:
        listener.execute("listen agentmesh_work")
        assert give_back(mesh, owned) == {owned}
        (heard,) = listener.notifies(timeout=10, stop_after=1)
    assert heard.payload == str(mesh.session)
    assert owner(mesh, owned) == (None, lease.epoch + 1)
    with pytest.raises(Fenced):
        mesh.run(steps.begin_step, lease, 0)
    assert mesh.claim(worker=other) == [owned]


@pytest.mark.parametrize(
    "identity",
    [{"providers": ("openai",)}, {"host": "elsewhere"}, {"os_user": "somebody"}, {"session": "another"}],
    ids=lambda identity: next(iter(identity)),
)
def test_it_stays_where_no_other_worker_may_run_it(mesh: Mesh, owned: AgentId, identity: dict[str, Any]):
    if "session" in identity:
        identity = {"session": mesh.session_of(mesh.new_session())}
    mesh.join(**identity)
    before = owner(mesh, owned)
    assert give_back(mesh, owned) == set()
    assert owner(mesh, owned) == before


@pytest.mark.parametrize("what", ["ended_at = now()", "lost_at = now()", "seen_at = now() - interval '11 s'"])
def test_it_stays_where_the_other_worker_seems_not_to_live(mesh: Mesh, owned: AgentId, what: str):
    other = mesh.join()
    mesh.conn.execute(f"update agentmesh.workers set {what} where id = %s", [other])
    before = owner(mesh, owned)
    assert give_back(mesh, owned) == set()
    assert owner(mesh, owned) == before


def test_it_stays_where_the_other_worker_has_more_than_it_can_run_itself(mesh: Mesh, owned: AgentId):
    other = mesh.join(concurrency=1)
    busy = [mesh.fork(mesh.root, name, "work") for name in ("b", "c")]
    assert set(mesh.claim(worker=other)) == set(busy)
    assert give_back(mesh, owned) == set()
    mesh.wait(busy[0])
    assert give_back(mesh, owned) == {owned}, "an agent inside a wait takes no thread"


def test_an_agent_that_waits_for_a_person_or_a_task_takes_no_thread(mesh: Mesh, owned: AgentId):
    other = mesh.join(concurrency=1)
    asking, delegating = (mesh.fork(mesh.root, name, "work") for name in ("b", "c"))
    assert set(mesh.claim(worker=other)) == {asking, delegating}
    assert give_back(mesh, owned) == set()
    mesh.ask(asking)
    mesh.task(delegating)
    assert give_back(mesh, owned) == {owned}


def test_only_what_is_still_owned_under_that_epoch_is_given(mesh: Mesh, owned: AgentId):
    other = mesh.join()
    theirs, dead = mesh.fork(mesh.root, "theirs", "work"), mesh.fork(mesh.root, "dead", "work")
    assert mesh.claim(1, other) == [theirs]
    assert mesh.claim() == [dead]
    epochs = {owned: mesh.lease(owned).epoch - 1, theirs: 1, dead: 1}
    mesh.kill(dead)
    before = owner(mesh, owned), owner(mesh, theirs), owner(mesh, dead)
    assert mesh.run(workers.give_back, mesh.worker, epochs) == set()
    assert (owner(mesh, owned), owner(mesh, theirs), owner(mesh, dead)) == before


def test_one_that_was_interrupted_stays_with_its_owner_who_stops_it(mesh: Mesh, owned: AgentId):
    mesh.join()
    mesh.begin(owned)
    assert mesh.interrupt(owned)
    assert give_back(mesh, owned) == set()


def test_where_there_is_nobody_else_it_waits_for_no_lock(mesh: Mesh, stage: Stage, owned: AgentId):
    stage.holder.execute("select from agentmesh.agents where id = %s for no key update", [owned])
    given = stage.meanwhile(lambda conn: workers.give_back(conn, mesh.worker, {owned: 1}), blocks=False)
    assert given.result() == set()


def test_a_write_of_its_owner_in_the_same_instant_is_made_before_or_refused(mesh: Mesh, stage: Stage, owned: AgentId):
    mesh.join()
    lease = mesh.lease(owned)
    workers.give_back(stage.holder, mesh.worker, {owned: lease.epoch})
    write = stage.meanwhile(lambda conn: steps.begin_step(conn, lease, 0), blocks=True)
    stage.holder.commit()
    with pytest.raises(Fenced), translated():
        write.result()
    again = mesh.begin(owned)
    steps.finish_step(stage.holder, again, {"text": "bye"}, [], {})
    late = stage.meanwhile(lambda conn: workers.give_back(conn, mesh.worker, {owned: again.epoch}), blocks=True)
    stage.holder.commit()
    assert late.result() == set()
    assert mesh.status(owned) is AgentStatus.IDLE


def test_a_kill_in_the_same_instant_wins(mesh: Mesh, stage: Stage, owned: AgentId):
    mesh.join()
    agents.kill(stage.holder, owned, None, None)
    given = stage.meanwhile(lambda conn: workers.give_back(conn, mesh.worker, {owned: 1}), blocks=True)
    stage.holder.commit()
    assert given.result() == set()
    assert mesh.status(owned) is AgentStatus.DEAD


def test_a_kill_that_comes_second_kills_what_nobody_owns(mesh: Mesh, stage: Stage, owned: AgentId):
    mesh.join()
    workers.give_back(stage.holder, mesh.worker, {owned: 1})
    kill = stage.meanwhile(lambda conn: agents.kill(conn, owned, None, None), blocks=True)
    stage.holder.commit()
    assert [ref.name for ref in kill.result()] == ["a"]


def test_two_that_claim_what_is_given_back_get_it_once(mesh: Mesh, stage: Stage, owned: AgentId):
    one, two = mesh.join(), mesh.join()
    workers.give_back(stage.holder, mesh.worker, {owned: 1})
    early = stage.meanwhile(lambda conn: workers.claim(conn, one, 1), blocks=False)
    assert early.result() == [], "it is not theirs before the commit, and nobody waits for that"
    stage.holder.commit()
    assert [agent.id for agent in workers.claim(stage.holder, one, 1)] == [owned]
    late = stage.meanwhile(lambda conn: workers.claim(conn, two, 1), blocks=False)
    stage.holder.commit()
    assert late.result() == []
    assert owner(mesh, owned) == (one, 3)


def test_the_sweep_that_takes_the_worker_for_dead_and_its_offer(mesh: Mesh, stage: Stage, owned: AgentId):
    """Both raise the epoch; whoever comes second finds nothing of the worker's."""
    mesh.join()
    workers.release(stage.holder, mesh.worker)
    given = stage.meanwhile(lambda conn: workers.give_back(conn, mesh.worker, {owned: 1}), blocks=True)
    stage.holder.commit()
    assert given.result() == set()
    assert owner(mesh, owned) == (None, 2)
