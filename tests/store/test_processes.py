"""Processes: rows whose ends, matching lines and lost workers are mail to their owner in the same commit."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from agentmesh.domain.errors import Fenced, TooManyProcesses, UnknownProcess
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.states import AgentStatus
from agentmesh.store import agents, mailbox, processes, sessions, steps, waits, workers
from agentmesh.store.call import Lease
from agentmesh.store.processes import ProcessKey
from tests.fixtures.mesh import Mesh

pytestmark = pytest.mark.only_rows


def owner(mesh: Mesh, name: str = "a") -> Lease:
    """Return the lease of a new agent that runs."""
    agent = mesh.fork(mesh.root, name)
    mesh.run(mailbox.send, None, agent, "go")
    mesh.run(workers.claim, mesh.worker, 100)
    epoch = mesh.one("select epoch from agentmesh.agents where id = %s", agent)
    return Lease(agent, mesh.worker, epoch, seq=1, ordinal=0)


def start(mesh: Mesh, lease: Lease, ordinal: int = 0, watch: str | None = None) -> ProcessKey:
    number = mesh.run(processes.start, lease.call(1, ordinal), "npm run dev", watch)
    return ProcessKey(mesh.session, number, lease.worker_id)


def rest(mesh: Mesh, agent: AgentId) -> None:
    """Make the agent idle with nothing unread."""
    mesh.conn.execute(
        "update agentmesh.mail set read_at = clock_timestamp(), read_seq = 1 where recipient = %s", [agent]
    )
    mesh.conn.execute("update agentmesh.agents set status = 'idle', worker_id = null where id = %s", [agent])


def state(mesh: Mesh, key: ProcessKey) -> str:
    found: str = mesh.one(
        "select state from agentmesh.processes where session_id = %s and id = %s", key.session, key.process
    )
    return found


def test_the_end_of_a_process_wakes_its_idle_owner_once(mesh: Mesh):
    lease = owner(mesh)
    key = start(mesh, lease)
    rest(mesh, lease.agent_id)
    assert mesh.run(processes.finish, key, "exited", 3, "boom\n", 5)
    assert not mesh.run(processes.finish, key, "exited", 3, "boom\n", 5)
    assert mesh.unread(lease.agent_id) == ["Process 1 (npm run dev) exited with code 3\nThe end of its output:\nboom\n"]
    assert mesh.status(lease.agent_id) is AgentStatus.RUNNING
    found = mesh.run(processes.get, mesh.session, key.process)
    assert found is not None
    assert (found.state, found.exit_code, found.output, found.output_bytes) == ("exited", 3, "boom\n", 5)
    assert mesh.one("select sender_name from agentmesh.v_mail where about = 'process'") == "process"


def test_a_quiet_end_begins_no_turn_of_an_owner_that_is_interrupted(mesh: Mesh):
    lease = owner(mesh)
    key = start(mesh, lease)
    mesh.begin(lease.agent_id)
    assert mesh.interrupt(lease.agent_id) is True
    assert mesh.run(processes.finish, key, "killed", None, "", 0, quiet=True)
    assert mesh.run(steps.stop_turn, mesh.lease(lease.agent_id)) is AgentStatus.IDLE
    assert mesh.unread(lease.agent_id) == ["Process 1 (npm run dev) was stopped"], "the next turn reads it"


def test_a_quiet_end_holds_back_no_mail_that_came_after_the_interrupt(mesh: Mesh):
    lease = owner(mesh)
    key = start(mesh, lease)
    mesh.begin(lease.agent_id)
    mesh.interrupt(lease.agent_id)
    mesh.send(None, lease.agent_id, "go on")
    mesh.run(processes.finish, key, "killed", None, "", 0, quiet=True)
    assert mesh.run(steps.stop_turn, mesh.lease(lease.agent_id)) is AgentStatus.RUNNING
    assert mesh.unread(lease.agent_id) == []


def test_mail_about_a_process_is_no_message_of_the_user(mesh: Mesh):
    lease = owner(mesh)
    key = start(mesh, lease)
    rest(mesh, lease.agent_id)
    mesh.run(processes.finish, key, "exited", 0, "", 0)
    mail = mesh.one("select id from agentmesh.mail where about = 'process'")
    assert mesh.one("select agent_wakes from agentmesh.agents where id = %s", lease.agent_id) == 1
    with pytest.raises(psycopg.Error):
        mesh.conn.execute("select agentmesh.take_back(%s)", [mail])
    mesh.conn.execute(
        "select agentmesh.read_mail(a, array[%s]::bigint[]) from agentmesh.agents a where a.id = %s",
        [mail, lease.agent_id],
    )
    row = mesh.one(
        "select kind || ' ' || (content ->> 'name') from agentmesh.transcript where agent_id = %s", lease.agent_id
    )
    assert row == "mail process"


def test_a_call_starts_one_process_however_often_it_is_sent(mesh: Mesh):
    lease = owner(mesh)
    assert start(mesh, lease) == start(mesh, lease)
    assert start(mesh, lease, ordinal=1).process == 2


def test_a_matching_line_is_mail_and_more_of_them_only_count_until_it_is_read(mesh: Mesh):
    lease = owner(mesh)
    key = start(mesh, lease, watch="ready")
    rest(mesh, lease.agent_id)
    for number in (1, 2, 3):
        assert mesh.run(processes.match, key, "server ready", number)
    assert mesh.unread(lease.agent_id) == ["Process 1 (npm run dev) wrote: server ready"]
    rest(mesh, lease.agent_id)
    mesh.run(processes.match, key, "ready again", 4)
    assert mesh.unread(lease.agent_id) == ["Process 1 (npm run dev) wrote: ready again\n(4 lines matched so far)"]


def test_a_line_that_is_told_again_after_a_lost_reply_changes_nothing(mesh: Mesh):
    lease = owner(mesh)
    key = start(mesh, lease, watch="ready")
    rest(mesh, lease.agent_id)
    mesh.run(processes.match, key, "server ready", 1)
    rest(mesh, lease.agent_id)
    assert mesh.run(processes.match, key, "server ready", 1)
    assert mesh.unread(lease.agent_id) == []
    assert mesh.status(lease.agent_id) is AgentStatus.IDLE
    found = mesh.run(processes.get, mesh.session, key.process)
    assert found is not None
    assert found.matches == 1


def test_the_end_of_the_watching_is_told_once_also_beside_an_unread_line(mesh: Mesh):
    lease = owner(mesh)
    key = start(mesh, lease, watch="ready")
    rest(mesh, lease.agent_id)
    mesh.run(processes.match, key, "ready", 1)
    for _ in range(2):
        assert mesh.run(processes.unwatch, key)
    rest(mesh, lease.agent_id)
    assert mesh.run(processes.unwatch, key)
    assert mesh.unread(lease.agent_id) == []
    told = mesh.column("select body from agentmesh.mail where about = 'process' order by id")
    assert [text.split(") ", 1)[1][:6] for text in told] == ["wrote:", "is no "]
    mesh.run(processes.finish, key, "exited", 0, "", 0)
    assert not mesh.run(processes.unwatch, key)


@pytest.mark.parametrize("alone", [True, False])
def test_a_wait_ends_with_it_and_says_that_it_is_a_process(mesh: Mesh, alone: bool):
    lease = owner(mesh)
    key = start(mesh, lease)
    targets = None if alone else [waits_target(mesh)]
    rest(mesh, lease.agent_id)
    assert mesh.run(waits.wait_begin, lease.agent_id, targets, 60) is None
    mesh.run(processes.finish, key, "exited", 0, "", 0)
    result = mesh.run(waits.wait_take, lease.agent_id)
    assert result is not None
    assert result["outcome"] == "process"
    assert result["results"][-1] == {"name": "process", "message": "Process 1 (npm run dev) exited with code 0"}


def waits_target(mesh: Mesh) -> dict[str, Any]:
    busy = mesh.fork(mesh.root, "busy")
    mesh.run(mailbox.send, None, busy, "work")
    return mesh.run(waits.targets, mesh.session, [str(busy)], mesh.root)[0]


def test_a_limit_for_an_agent_and_a_fenced_worker(mesh: Mesh):
    lease = owner(mesh)
    for ordinal in range(8):
        start(mesh, lease, ordinal)
    with pytest.raises(TooManyProcesses, match="8 processes"):
        start(mesh, lease, 8)
    with pytest.raises(Fenced):
        start(mesh, Lease(lease.agent_id, lease.worker_id, lease.epoch + 1, 1, 9), 9)


def test_a_stop_is_a_wish_that_its_worker_finds(mesh: Mesh):
    lease = owner(mesh)
    key, other = start(mesh, lease), start(mesh, lease, 1)
    assert mesh.run(processes.to_end, lease.worker_id, [key, other]) == set()
    assert mesh.run(processes.stop, mesh.session, key.process)
    assert mesh.run(processes.to_end, lease.worker_id, [key, other]) == {(mesh.session, key.process)}
    mesh.run(processes.finish, key, "killed", None, "", 0)
    assert not mesh.run(processes.stop, mesh.session, key.process)
    with pytest.raises(UnknownProcess):
        mesh.run(processes.stop, mesh.session, 99)


def test_the_death_of_its_agent_ends_it_without_mail(mesh: Mesh):
    lease = owner(mesh)
    key = start(mesh, lease)
    mesh.run(agents.kill, lease.agent_id)
    assert state(mesh, key) == "killed"
    assert mesh.run(processes.to_end, lease.worker_id, [key]) == {(mesh.session, key.process)}
    assert not mesh.run(processes.keep_output, key, "late", 4)
    assert not mesh.run(processes.match, key, "late", 1)
    assert not mesh.run(processes.finish, key, "exited", 0, "", 0)
    assert mesh.one("select count(*) from agentmesh.mail where about = 'process'") == 0


def test_the_end_of_the_session_ends_it_and_deleting_takes_the_row(mesh: Mesh):
    lease = owner(mesh)
    key = start(mesh, lease)
    mesh.run(sessions.end_session, mesh.session)
    assert state(mesh, key) == "killed"
    mesh.conn.execute("select agentmesh.delete_session(%s)", [mesh.session])
    assert mesh.one("select count(*) from agentmesh.processes") == 0
    assert mesh.run(processes.to_end, lease.worker_id, [key]) == {(SessionId(key.session), key.process)}


def test_a_process_whose_worker_has_ended_is_lost_at_the_next_tick(mesh: Mesh):
    lease = owner(mesh)
    key = start(mesh, lease)
    mesh.run(processes.keep_output, key, "so far\n", 7)
    rest(mesh, lease.agent_id)
    assert mesh.one("select agentmesh.lose_processes()") == 0
    mesh.conn.execute("update agentmesh.workers set ended_at = clock_timestamp() where id = %s", [lease.worker_id])
    assert mesh.run(processes.listed, mesh.session)[0].without_worker
    assert mesh.column("select problem from agentmesh.v_stuck where agent_id = %s", lease.agent_id) == [
        "process without worker"
    ]
    assert mesh.one("select agentmesh.lose_processes()") == 1
    assert mesh.one("select agentmesh.lose_processes()") == 0
    assert state(mesh, key) == "lost"
    assert mesh.unread(lease.agent_id) == [
        "Process 1 (npm run dev) is lost: its worker ended\nThe end of its output:\nso far\n"
    ]


def test_a_row_refuses_illegal_states(mesh: Mesh):
    key = start(mesh, owner(mesh))
    for wrong in ("state = 'exited'", "exit_code = 1", "matches = 1", "state = 'paused'"):
        with pytest.raises(psycopg.errors.CheckViolation), mesh.conn.transaction():
            mesh.conn.execute(f"update agentmesh.processes set {wrong} where id = {key.process}")
