"""sweep: the agents of a dead process are free within seconds, those of a living one never."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psycopg
import pytest

from agentmesh.domain.errors import Fenced
from agentmesh.domain.ids import WorkerId
from agentmesh.store import steps, workers
from tests.fixtures.mesh import HOST, MODEL, USER, Mesh

pytestmark = pytest.mark.only_rows

PROCESS = """
import sys
import psycopg
conn = psycopg.connect(sys.argv[1], autocommit=True)
join = "select agentmesh.join_worker(%s, %s, %s, 4, %s)"
worker = conn.execute(join, [sys.argv[2], sys.argv[3], 1, [sys.argv[4]]]).fetchone()[0]
conn.execute("select agentmesh.claim(%s, 10)", [worker])
print(worker, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def process(database_url: str, mesh: Mesh):
    """A real process with a worker that has claimed all queued agents; its id comes on stdout."""
    arguments = [sys.executable, "-c", PROCESS, database_url, HOST, USER, MODEL.split("/")[0]]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        yield running
        running.kill()


def started(process: subprocess.Popen[str]) -> WorkerId:
    assert process.stdout is not None
    return WorkerId(int(process.stdout.readline()))


def sweep(mesh: Mesh, seconds_later: float = 0) -> int:
    """Sweep as the mesh's own worker; the clock stands still, so what was seen is made older instead."""
    mesh.conn.execute("update agentmesh.workers set lost_at = lost_at - make_interval(secs => %s)", [seconds_later])
    return int(mesh.one("select agentmesh.sweep(%s)", mesh.worker))


def holds_lock(mesh: Mesh, worker: WorkerId) -> bool:
    found = mesh.one(
        "select exists (select from pg_locks where locktype = 'advisory' and granted and objid = %s::bigint::oid"
        " and database = (select oid from pg_database where datname = current_database()))",
        worker,
    )
    return bool(found)


def wait_until_gone(mesh: Mesh, worker: WorkerId) -> None:
    """Return once the server has noticed the end of the worker's connection."""
    pid = mesh.one("select backend_pid from agentmesh.workers where id = %s", worker)
    while mesh.one("select count(*) from pg_stat_activity where pid = %s", pid):
        mesh.conn.execute("select pg_sleep(0.01)")


def test_a_killed_process_loses_its_lock_and_then_its_agents(mesh: Mesh, process: subprocess.Popen[str]):
    worker = started(process)
    a = mesh.fork(mesh.root, "a", "work")
    mesh.claim(worker=worker)
    lease = mesh.lease(a)
    assert holds_lock(mesh, worker)
    assert sweep(mesh, 10) == 0, "it lives"
    os.kill(process.pid, signal.SIGKILL)
    wait_until_gone(mesh, worker)
    assert not holds_lock(mesh, worker)
    assert sweep(mesh) == 0, "one look is not enough: it may be reconnecting"
    assert sweep(mesh, 0.5) == 0, "nor two in the same second"
    assert sweep(mesh, 1) == 1
    assert mesh.one("select ended_at is not null from agentmesh.workers where id = %s", worker)
    with pytest.raises(Fenced):
        mesh.run(steps.begin_step, lease, 0)
    assert mesh.claim() == [a]


def test_an_agent_that_somebody_has_locked_holds_up_no_other(mesh: Mesh, database_url: str):
    """Sweeping is in the commit of the heartbeat: waiting for the lock would stop that too."""
    with psycopg.connect(database_url, autocommit=True) as old:
        worker = mesh.join(old)
        a, b = mesh.fork(mesh.root, "a", "work"), mesh.fork(mesh.root, "b", "work")
        mesh.claim(worker=worker)
    wait_until_gone(mesh, worker)
    assert sweep(mesh) == 0
    lease = mesh.lease(a)
    with psycopg.connect(database_url) as other:
        other.execute("select agentmesh.send(null, %s, 'hello')", [a])
        mesh.conn.execute("set lock_timeout = '1 s'")
        assert sweep(mesh, 1) == 1
        assert mesh.claim() == [b]
        assert sweep(mesh) == 0, "it is left"
    assert sweep(mesh) == 1
    assert mesh.claim() == [a]
    assert mesh.one("select ended_at is not null from agentmesh.workers where id = %s", worker)
    with pytest.raises(Fenced):
        mesh.run(steps.begin_step, lease, 0)


def test_a_frozen_process_is_dead_after_thirty_seconds_though_it_holds_its_lock(
    mesh: Mesh, process: subprocess.Popen[str]
):
    worker = started(process)
    mesh.fork(mesh.root, "a", "work")
    mesh.claim(worker=worker)
    mesh.conn.execute(
        "update agentmesh.workers set seen_at = clock_timestamp() - interval '29 s' where id = %s", [worker]
    )
    assert sweep(mesh) == 0
    mesh.conn.execute(
        "update agentmesh.workers set seen_at = clock_timestamp() - interval '31 s' where id = %s", [worker]
    )
    assert sweep(mesh) == 1
    assert mesh.run(workers.rejoin, worker) is False, "it cannot come back"


def test_a_worker_that_comes_back_in_time_keeps_its_agents(mesh: Mesh, database_url: str):
    with psycopg.connect(database_url, autocommit=True) as old:
        worker = mesh.join(old)
        mesh.fork(mesh.root, "a", "work")
        mesh.claim(worker=worker)
    wait_until_gone(mesh, worker)
    assert sweep(mesh) == 0
    with psycopg.connect(database_url, autocommit=True) as new:
        assert workers.rejoin(new, worker) is True
        assert sweep(mesh, 10) == 0
        assert mesh.one("select lost_at from agentmesh.workers where id = %s", worker) is None
        assert sweep(mesh, 10) == 0


def test_a_connection_that_only_the_worker_has_given_up_is_ended_when_it_comes_back(mesh: Mesh, database_url: str):
    with psycopg.connect(database_url, autocommit=True) as silent:
        worker = mesh.join(silent)
        with psycopg.connect(database_url, autocommit=True) as new:
            assert workers.rejoin(new, worker) is True
            assert sweep(mesh) == 0
            assert mesh.one("select lost_at from agentmesh.workers where id = %s", worker) is None
        with pytest.raises(psycopg.OperationalError):
            silent.execute("select 1")


def test_a_lock_that_somebody_else_holds_keeps_no_dead_worker_alive(mesh: Mesh, database_url: str):
    with psycopg.connect(database_url, autocommit=True) as old:
        worker = mesh.join(old)
    wait_until_gone(mesh, worker)
    with psycopg.connect(database_url, autocommit=True) as forger:
        forger.execute("select pg_advisory_lock(agentmesh.lock_class(), %s::integer)", [worker])
        sweep(mesh)
        sweep(mesh, 1)
    assert mesh.one("select ended_at is not null from agentmesh.workers where id = %s", worker)


def test_all_dead_workers_are_swept_in_one_go(mesh: Mesh, database_url: str):
    for name in "abc":
        with psycopg.connect(database_url, autocommit=True) as old:
            worker = mesh.join(old)
            mesh.fork(mesh.root, name, "work")
            mesh.claim(worker=worker)
        wait_until_gone(mesh, worker)
    assert sweep(mesh) == 0
    assert sweep(mesh, 1) == 3


def test_the_sweeper_spares_itself(mesh: Mesh):
    mesh.conn.execute("update agentmesh.workers set seen_at = '2020-01-01'")
    assert sweep(mesh) == 0
    assert mesh.one("select ended_at from agentmesh.workers where id = %s", mesh.worker) is None


def test_a_released_workers_wait_is_finished_by_the_next(mesh: Mesh):
    a = mesh.fork(mesh.root, "a", "work")
    assert mesh.wait(mesh.root, a, timeout=0.001) is None
    mesh.run(workers.release, mesh.worker)
    mesh.worker = mesh.join()
    assert set(mesh.claim(0)) == {mesh.root}
    seen = mesh.run(workers.tick, mesh.worker, {mesh.root: mesh.lease(mesh.root).epoch})
    assert (mesh.root, "wait") in [(each.agent_id, each.what) for each in seen], "its deadline has passed"


# Issue 17, point 16: what happened while nobody could be seen is held against nobody.


def beats(mesh: Mesh) -> None:
    mesh.run(workers.tick, mesh.worker, {})


def older(mesh: Mesh, seconds: float) -> None:
    """Let everything that workers' rows say of time have happened so much earlier: so far has the clock gone on."""
    mesh.conn.execute(
        "update agentmesh.workers set started_at = started_at - d, seen_at = seen_at - d, lost_at = lost_at - d,"
        " back_at = back_at - d from (select make_interval(secs => %s)) x (d)",
        [seconds],
    )


def alive(mesh: Mesh, worker: WorkerId) -> bool:
    return bool(mesh.one("select ended_at is null from agentmesh.workers where id = %s", worker))


@pytest.mark.parametrize("seconds", [40, 3600], ids=["an outage", "a jump of the clock"])
def test_the_first_worker_that_is_back_gives_the_others_a_lease(
    mesh: Mesh, process: subprocess.Popen[str], seconds: float
):
    """All were away alike, or the clock has jumped: the heartbeats are old because nobody could beat."""
    worker = started(process)
    older(mesh, seconds)
    beats(mesh)
    assert alive(mesh, worker)
    older(mesh, 29)
    beats(mesh)  # it was seen 29 s ago, which is another gap: only its own beats count
    assert alive(mesh, worker)


def test_who_does_not_come_back_within_the_lease_is_dead(mesh: Mesh, process: subprocess.Popen[str]):
    worker = started(process)
    mesh.fork(mesh.root, "a", "work")
    mesh.claim(worker=worker)
    older(mesh, 40)
    beats(mesh)
    for _ in range(4):
        older(mesh, 7)
        beats(mesh)
        assert alive(mesh, worker), "not yet"
    older(mesh, 7)
    beats(mesh)
    assert not alive(mesh, worker)


def test_a_lock_that_is_missing_after_an_outage_is_not_believed_for_a_lease(mesh: Mesh, database_url: str):
    """The server ended everybody's connections; who is first back looks twice before the others are."""
    with psycopg.connect(database_url, autocommit=True) as old:
        worker = mesh.join(old)
    wait_until_gone(mesh, worker)
    older(mesh, 12)
    for _ in range(5):
        beats(mesh)
        assert alive(mesh, worker)
        older(mesh, 2)
    with psycopg.connect(database_url, autocommit=True) as new:
        assert workers.rejoin(new, worker) is True
        beats(mesh)
    wait_until_gone(mesh, worker)
    beats(mesh)
    older(mesh, 2)
    beats(mesh)
    assert not alive(mesh, worker), "it was seen since, and lost afterwards"


def test_a_worker_that_comes_back_first_does_not_hide_by_its_lock_that_it_was_away(mesh: Mesh, database_url: str):
    """Its LISTEN connection is back before its first tick, and says that it was seen."""
    with psycopg.connect(database_url, autocommit=True) as theirs, psycopg.connect(database_url) as new:
        other, mesh.worker = mesh.worker, mesh.join(theirs)
        older(mesh, 40)
        assert workers.rejoin(new, mesh.worker) is True
        new.commit()
        beats(mesh)
        assert alive(mesh, other)


def test_a_clock_that_was_set_back_makes_nobody_immortal(mesh: Mesh, process: subprocess.Popen[str]):
    worker = started(process)
    older(mesh, -3600)
    beats(mesh)
    assert alive(mesh, worker)
    for _ in range(6):
        older(mesh, 7)
        beats(mesh)
    assert not alive(mesh, worker), "it was not seen for 42 s"
