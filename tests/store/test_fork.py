"""fork: one commit or nothing; running from that commit on; the tool's result with it."""

from __future__ import annotations

import pytest

from agentmesh.domain.errors import (
    CallClosed,
    DeadAgent,
    EmptyMessage,
    Fenced,
    MessageTooLarge,
    SessionEnded,
    UnknownAgent,
)
from agentmesh.domain.states import AgentStatus
from agentmesh.store import agents, sessions, workers
from agentmesh.store.call import Lease
from tests.fixtures.mesh import Mesh, unknown

pytestmark = pytest.mark.only_rows


def test_with_a_prompt_it_is_running_in_the_forks_own_commit(mesh: Mesh):
    child = mesh.fork(mesh.root, "child", "do it")
    same = mesh.one(
        "select a.xmin = m.xmin from agentmesh.agents a join agentmesh.mail m on m.recipient = a.id where a.id = %s",
        child,
    )
    assert same is True
    assert mesh.status(child) is AgentStatus.RUNNING
    assert mesh.unread(child) == ["do it"]


def test_without_a_prompt_it_is_idle_and_has_no_mail(mesh: Mesh):
    child = mesh.fork(mesh.root, "child")
    assert mesh.status(child) is AgentStatus.IDLE
    assert mesh.unread(child) == []


def test_it_inherits_settings_model_and_permissions(mesh: Mesh):
    mesh.conn.execute(
        "update agentmesh.agents set model = 'm/x', permissions = '[{\"deny\": \"bash\"}]' where id = %s", [mesh.root]
    )
    root, child = mesh.run(agents.get, mesh.root), mesh.run(agents.get, mesh.fork(mesh.root, "child"))
    for field in ("session_id", "model", "settings_id", "permissions"):
        assert getattr(child, field) == getattr(root, field)
    assert (child.parent_id, child.depth) == (root.id, 1)


def test_by_tool_the_prompt_is_from_the_parent_and_the_result_in_the_same_commit(mesh: Mesh):
    call = mesh.call(mesh.root, "fork")[0]
    child = mesh.fork(mesh.root, "Child", "do it", call)
    assert mesh.result(call) == {"agent_id": str(child), "name": "child"}
    assert mesh.one("select sender from agentmesh.mail where recipient = %s", child) == mesh.root
    same = mesh.one(
        "select a.xmin = t.xmin from agentmesh.agents a, agentmesh.transcript t"
        " where a.id = %s and t.agent_id = a.parent_id and t.kind = 'tool_result'",
        child,
    )
    assert same is True


def test_by_a_person_the_prompt_is_from_the_user(mesh: Mesh):
    child = mesh.fork(mesh.root, "child", "do it")
    assert mesh.conn.execute("select sender from agentmesh.mail where recipient = %s", [child]).fetchone() == (None,)


def test_a_refused_fork_changes_nothing(mesh: Mesh):
    call = mesh.call(mesh.root, "fork")[0]
    with pytest.raises(EmptyMessage):
        mesh.fork(mesh.root, "child", " \n", call)
    with pytest.raises(MessageTooLarge):
        mesh.fork(mesh.root, "child", "x" * 262145, call)
    assert mesh.one("select count(*) from agentmesh.agents") == 1
    assert mesh.result(call) is None


def test_the_same_call_forks_once(mesh: Mesh):
    call = mesh.call(mesh.root, "fork", "bash")[0]
    mesh.fork(mesh.root, "child", "do it", call)
    with pytest.raises(CallClosed):
        mesh.fork(mesh.root, "child", "do it", call)
    assert mesh.one("select count(*) from agentmesh.agents") == 2


def test_a_worker_that_lost_the_agent_forks_nothing(mesh: Mesh):
    call = mesh.call(mesh.root, "fork")[0]
    mesh.run(workers.release, mesh.worker)
    mesh.claim(worker=mesh.join())
    with pytest.raises(Fenced):
        mesh.fork(mesh.root, "child", "do it", call)
    assert mesh.one("select count(*) from agentmesh.agents") == 1


def test_a_lease_without_a_call_is_no_persons_fork(mesh: Mesh):
    lease = mesh.begin(mesh.root)
    with pytest.raises(CallClosed):
        mesh.fork(mesh.root, "child", "do it", lease)
    stale = Lease(lease.agent_id, lease.worker_id, lease.epoch - 1)
    with pytest.raises(Fenced):
        mesh.fork(mesh.root, "child", "do it", stale)


def test_a_dead_an_unknown_and_an_ended_parent_are_refused(mesh: Mesh):
    child = mesh.fork(mesh.root, "child")
    mesh.kill(child)
    with pytest.raises(DeadAgent, match=r"child \("):
        mesh.fork(child, "grandchild")
    with pytest.raises(UnknownAgent):
        mesh.fork(unknown(), "child")
    mesh.run(sessions.end_session, mesh.session)
    with pytest.raises(SessionEnded):
        mesh.fork(mesh.root, "late")


def test_plain_sql_needs_no_more_than_parent_and_name(mesh: Mesh):
    child = mesh.one("select agentmesh.fork(%s, 'from psql', 'hello')", mesh.root)
    assert mesh.name(child) == "from-psql"
    assert mesh.status(child) is AgentStatus.RUNNING


def test_the_note_about_a_call_goes_into_its_result(mesh: Mesh):
    call = mesh.call(mesh.root, "fork")[0].call(2, 0, "unknown argument colour")
    child = mesh.fork(mesh.root, "child", "do it", call)
    assert mesh.result(call) == {"agent_id": str(child), "name": "child", "note": "unknown argument colour"}
