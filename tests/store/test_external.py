"""External agents: joined by a process that lives, idle when it does not; their leases have no calls to answer."""

from __future__ import annotations

import psycopg
import pytest

from agentmesh.domain.errors import AgentBusy, DeadAgent, Fenced, SessionEnded, WaitBusy
from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import Attention
from agentmesh.domain.states import AgentStatus
from agentmesh.store import agents, external, sessions, waits, workers
from agentmesh.store.call import Lease
from tests.fixtures.invariants import violations
from tests.fixtures.mesh import HOST, MODEL, USER, Mesh, entry

pytestmark = pytest.mark.only_rows


def seat(mesh: Mesh, agent: AgentId | None = None) -> Lease:
    """Join as an external agent of the session, on the mesh's own connection."""
    return mesh.run(external.join, mesh.join(providers=()), agent or guest(mesh))


def guest(mesh: Mesh, name: str = "guest") -> AgentId:
    return mesh.run(external.guest, mesh.session, name)


def wait(mesh: Mesh, lease: Lease, *targets: AgentId, timeout: float = 30):
    return mesh.run(waits.wait_begin, lease.agent_id, mesh.targets(*targets), timeout, lease)


def look(mesh: Mesh, lease: Lease, final=None):
    return mesh.run(waits.wait_take, lease.agent_id, final, lease)


def test_a_guest_is_an_idle_child_of_the_root_until_somebody_joins_and_no_worker_claims_it(mesh: Mesh):
    agent = guest(mesh, "Claude Code")
    assert (mesh.name(agent), mesh.status(agent)) == ("claude-code", AgentStatus.IDLE)
    lease = seat(mesh, agent)
    assert mesh.status(agent) is AgentStatus.RUNNING
    assert lease == mesh.lease(agent)
    mesh.send(None, agent)
    assert mesh.claim() == []
    assert mesh.unread(agent) == ["hello"]


def test_a_guest_inherits_nothing_and_its_forks_inherit_what_it_read(mesh: Mesh):
    mesh.begin(mesh.root)
    lease = seat(mesh)
    assert mesh.context(lease.agent_id) == []
    mesh.send(mesh.root, lease.agent_id, "look at src")
    wait(mesh, lease)
    child = mesh.fork(lease.agent_id, "child", "work", lease)
    assert [content["text"] for _, content in mesh.context(child)] == ["look at src"]


def test_a_fork_is_prompted_by_the_external_agent_and_reports_to_it(mesh: Mesh):
    lease = seat(mesh)
    child = mesh.fork(lease.agent_id, "child", "work", lease)
    assert mesh.one("select sender from agentmesh.mail where recipient = %s", child) == lease.agent_id
    mesh.answer(child, "found it")
    child_done = entry(child, "child", "idle", output="found it")
    assert wait(mesh, lease, child) == {"outcome": "complete", "results": [child_done]}


def test_the_root_of_a_session_may_be_external(mesh: Mesh):
    root = mesh.run(sessions.start_session, sessions.NewSession("/tmp", HOST, USER, MODEL, "x", [], external=True))
    lease = seat(mesh, root)
    assert mesh.status(root) is AgentStatus.RUNNING
    assert mesh.run(agents.busy, mesh.session_of(root)) == 0
    assert lease.epoch == 1


def test_its_verbs_are_refused_without_its_lease(mesh: Mesh):
    lease = seat(mesh)
    mesh.run(workers.release, lease.worker_id)
    child = mesh.fork(lease.agent_id, "child")
    for call in (
        lambda: mesh.send(lease.agent_id, mesh.root, lease=lease),
        lambda: mesh.fork(lease.agent_id, "x", "work", lease),
        lambda: mesh.kill(child, lease.agent_id, lease),
        lambda: wait(mesh, lease),
        lambda: mesh.run(external.leave_wait, lease),
    ):
        with pytest.raises(Fenced):
            call()


def test_only_one_client_at_a_time(mesh: Mesh):
    lease = seat(mesh)
    assert mesh.run(external.join, lease.worker_id, lease.agent_id) == lease, "the same one again changes nothing"
    with pytest.raises(AgentBusy, match="another client has joined as guest"):
        seat(mesh, lease.agent_id)
    with pytest.raises(AgentBusy, match="no external agent"):
        seat(mesh, mesh.root)


def test_names_are_taken_again_when_idle_else_numbered(mesh: Mesh):
    first = seat(mesh, guest(mesh))
    second = guest(mesh)
    assert mesh.name(second) == "guest-2"
    assert guest(mesh) == second
    mesh.run(workers.release, first.worker_id)
    assert guest(mesh) == first.agent_id
    assert mesh.name(guest(mesh, "guest-2")) == "guest-2"
    assert mesh.name(guest(mesh, "gues")) == "gues"


def test_no_guest_of_a_session_that_has_ended(mesh: Mesh):
    agent = guest(mesh)
    mesh.run(sessions.end_session, mesh.session)
    with pytest.raises(SessionEnded):
        guest(mesh)
    with pytest.raises(DeadAgent):
        seat(mesh, agent)


def test_it_becomes_idle_when_its_process_leaves_and_who_waits_for_it_is_told(mesh: Mesh):
    lease = seat(mesh)
    mesh.send(mesh.root, lease.agent_id, "for later")
    mesh.wait(mesh.root, lease.agent_id)
    wait(mesh, lease, mesh.fork(mesh.root, "busy", "work"))
    mesh.conn.execute(f'listen "agent_event_{mesh.root}"')
    mesh.run(workers.release, lease.worker_id)
    assert "waited" in [note.payload for note in mesh.conn.notifies(timeout=0)]
    assert mesh.status(lease.agent_id) is AgentStatus.IDLE
    assert mesh.run(waits.registered, lease.agent_id) is None
    assert mesh.unread(lease.agent_id) == ["for later"]
    left = entry(lease.agent_id, "guest", "idle", output="")
    assert mesh.take(mesh.root) == {"outcome": "complete", "results": [left]}
    assert violations(mesh.conn) == []


def test_a_process_that_was_killed_is_swept_and_its_agent_taken_over(mesh: Mesh, database_url: str):
    with psycopg.connect(database_url, autocommit=True) as doomed:
        worker = mesh.join(doomed, providers=())
        lease = mesh.run(external.join, worker, guest(mesh))
    gone = "select count(*) = 0 from pg_locks where locktype = 'advisory' and objid = %s::oid"
    while not mesh.one(gone, int(worker)):
        pass
    taken = seat(mesh, lease.agent_id)
    assert taken.epoch == lease.epoch + 1
    with pytest.raises(Fenced):
        mesh.send(lease.agent_id, mesh.root, lease=lease)


def test_leaving_a_wait_takes_no_mail(mesh: Mesh):
    lease, busy = seat(mesh), mesh.fork(mesh.root, "busy", "work")
    other = mesh.fork(mesh.root, "other", "work")
    assert wait(mesh, lease, busy, other) is None
    with pytest.raises(WaitBusy):
        wait(mesh, lease)
    mesh.send(busy, lease.agent_id, "half")
    assert mesh.run(external.leave_wait, lease) is True
    assert mesh.run(external.leave_wait, lease) is False
    assert mesh.unread(lease.agent_id) == ["half"]
    assert mesh.column("select target from agentmesh.waits where waiter = %s", lease.agent_id) == []
    assert wait(mesh, lease, busy)["results"] == [entry(busy, "busy", "received", message="half")]


def test_an_interrupt_ends_its_wait_with_what_came_and_only_that_one(mesh: Mesh):
    lease, busy = seat(mesh), mesh.fork(mesh.root, "busy", "work")
    other = mesh.fork(mesh.root, "other", "work")
    wait(mesh, lease, busy, other)
    mesh.send(busy, lease.agent_id, "half")
    assert look(mesh, lease) is None
    assert mesh.interrupt(lease.agent_id)
    epochs = {lease.agent_id: lease.epoch}
    assert Attention(lease.agent_id, "interrupt") in mesh.run(workers.attention, lease.worker_id, epochs)
    received, running = entry(busy, "busy", "received", message="half"), entry(other, "other", "running")
    assert look(mesh, lease) == {"outcome": "interrupted", "results": [received, running]}
    assert wait(mesh, lease, other) is None
    assert look(mesh, lease) is None
    assert mesh.status(lease.agent_id) is AgentStatus.RUNNING


def test_outside_a_wait_there_is_nothing_to_interrupt(mesh: Mesh):
    lease = seat(mesh)
    assert not mesh.interrupt(lease.agent_id)
    activity = "select activity from agentmesh.v_agents where id = %s"
    assert mesh.one(activity, lease.agent_id) == "external"


def test_an_interrupt_that_comes_as_its_wait_is_left_does_not_reach_the_next(mesh: Mesh):
    lease, busy = seat(mesh), mesh.fork(mesh.root, "busy", "work")
    wait(mesh, lease, busy)
    mesh.interrupt(lease.agent_id)
    mesh.run(external.leave_wait, lease)
    wait(mesh, lease, busy)
    assert look(mesh, lease) is None


def test_a_person_cannot_wait_for_a_client_that_is_there(mesh: Mesh):
    lease = seat(mesh)
    with pytest.raises(AgentBusy):
        mesh.person_waits(lease.agent_id)


def test_mail_from_the_user_ends_its_wait(mesh: Mesh):
    lease = seat(mesh)
    wait(mesh, lease)
    mesh.send(None, lease.agent_id, "stop that")
    assert look(mesh, lease) == {"outcome": "user", "results": [{"name": "user", "message": "stop that"}]}
    assert mesh.unread(lease.agent_id) == []


def test_a_circle_through_it_is_refused(mesh: Mesh):
    lease = seat(mesh)
    mesh.wait(mesh.root, lease.agent_id)
    with pytest.raises(Exception, match="guest → root → guest"):
        wait(mesh, lease, mesh.root)


def test_it_is_no_worker_for_people(mesh: Mesh):
    before = mesh.run(workers.beating, HOST), len(mesh.run(workers.alive))
    seat(mesh)
    assert (mesh.run(workers.beating, HOST), len(mesh.run(workers.alive))) == before
