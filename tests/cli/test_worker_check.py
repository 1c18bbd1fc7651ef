"""worker --check: what a container's health check asks."""

from __future__ import annotations

import signal
import socket

from tests.fixtures.engine import until


def test_it_tells_by_its_exit_code_whether_a_worker_of_this_host_is_at_work(am, conn):
    none = am("worker", "--check")
    assert (none.code, none.out) == (1, "")
    assert none.err.startswith("No worker of ")
    with am.start("worker", "--any") as worker:
        until(lambda: am("worker", "--check").code == 0, "a healthy worker")
        conn.execute("update agentmesh.workers set host = 'elsewhere'")
        assert am("worker", "--check").code == 1
        conn.execute("update agentmesh.workers set host = %s", [worker_host()])
        assert am("worker", "--check").err == f"1 worker of {worker_host()} at work.\n"
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(20) == 0
    assert am("worker", "--check").code == 1


def test_one_that_hangs_is_not_at_work(am, conn, mesh):
    mesh.join(host=worker_host(), pid=2**31 - 1)  # nobody's: a process above would be refused
    assert am("worker", "--check").code == 0
    conn.execute("update agentmesh.workers set seen_at = clock_timestamp() - interval '31 s'")
    assert am("worker", "--check").code == 1


def test_it_starts_nothing_and_tells_of_a_database_that_is_not_there(am, lonely, tmp_path):
    assert lonely("worker", "--check").code == 1
    assert not (tmp_path / "data").exists()
    away = am("worker", "--check", AGENTMESH_DATABASE_URL="postgresql://127.0.0.1:1/x")
    assert away.code == 1
    assert "cannot be reached" in away.err


def worker_host() -> str:
    """The name by which workers of this host are known."""
    return socket.gethostname()


def test_one_that_beats_and_takes_no_agent_is_not_well(am, conn, mesh):
    """Issue 17, point 1: the heartbeat of a worker whose other threads are dead says nothing."""
    mesh.conn.execute("update agentmesh.workers set ended_at = clock_timestamp()")
    worker = mesh.join(host=worker_host(), pid=2**31 - 1, serves_any=True)
    mesh.fork(mesh.root, "a", "work")
    assert am("worker", "--check").code == 0
    conn.execute("update agentmesh.agents set queued_at = clock_timestamp() - interval '31 s'")
    ill = am("worker", "--check")
    assert ill.code == 1
    assert ill.err == f"1 worker of {worker_host()} at work, but 1 agent that it could run is left: agentmesh doctor.\n"
    mesh.claim(worker=worker)
    assert am("worker", "--check").code == 0
