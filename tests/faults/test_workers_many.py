"""Two, four and eight workers on one database: they share the work, and one after another may leave or freeze."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable

import pytest

from tests.faults import crowd
from tests.faults.conftest import ROUNDS
from tests.faults.crowd import impatient, rows
from tests.fixtures.engine import Rig, WorkerProcess, call, do, say, until, when

pytestmark = [pytest.mark.usefixtures("impatient"), pytest.mark.timeout(180)]
__all__ = ["impatient"]

Note = Callable[[str, object], None]

SLOTS = 2


def owners(rig: Rig) -> dict[int, int]:
    """Return how many agents each worker owns."""
    owned = "select worker_id, count(*) from agentmesh.agents where worker_id is not null group by worker_id"
    return dict(rig.conn.execute(owned).fetchall())


@pytest.mark.parametrize("count", [2, 4, 8] if ROUNDS else [8])
def test_no_worker_idles_while_others_have_more_than_they_can_run(rig: Rig, count: int, record_property: Note):
    """All answers are held back, so every worker owns what it has room for, and the rest waits for the first slot."""
    names = [f"a{n}" for n in range(count * SLOTS + 8)]
    rig.root = rig.session(max_children=len(names))
    go_on = threading.Event()
    for name in names:
        rig.fork(name)
        rig.script(name, when(go_on, do(call("list_agents"))), say(f"{name} is done"))
    workers = [rig.process(concurrency=SLOTS) for _ in range(count)]
    for name in names:
        rig.prompt("x", name)
    full = {each.worker_id: SLOTS for each in workers}
    rig.until(lambda: owners(rig) == full, "a share for everybody")
    go_on.set()
    rig.rest()
    assert [rig.last(name)[0] for name in names] == [f"{name} is done" for name in names]
    record_property("fault", (f"{count} workers on one database", 1, {}))


def freeze(rig: Rig, worker: WorkerProcess) -> None:
    """Stop a worker that owns agents, until others take it for dead; its heartbeat is made old, not waited for."""
    pid = worker.process.pid
    assert pid
    os.kill(pid, signal.SIGSTOP)
    crowd.until_buried(rig, worker.worker_id)


def thaw(rig: Rig, worker: WorkerProcess) -> None:
    """Let it go on until it has registered anew."""
    pid = worker.process.pid
    assert pid
    os.kill(pid, signal.SIGCONT)
    again = "select exists (select from agentmesh.workers where pid = %s and id > %s and ended_at is null)"
    until(lambda: rig.one(again, pid, worker.worker_id), "its new registration")


@pytest.mark.parametrize("seed", crowd.SEEDS)
@pytest.mark.parametrize("when_thawed", ["at once", "at the end"])
def test_a_worker_is_frozen_past_its_lease_and_thawed(rig: Rig, when_thawed: str, seed: str, record_property: Note):
    crowd.script(rig)
    frozen = rig.process(concurrency=6)
    rig.prompt()
    for _moment in crowd.at_moments(rig, random.Random(f"{seed} {when_thawed}"), 1):
        rig.worker(concurrency=6, tick=0.2)
        freeze(rig, frozen)
        assert owners(rig).get(frozen.worker_id) is None
    if when_thawed == "at once":
        thaw(rig, frozen)
    crowd.until_rest(rig)
    before = rows(rig)
    if when_thawed == "at the end":
        thaw(rig, frozen)
    frozen.close()
    assert rows(rig) == before
    record_property("fault", (f"a worker frozen past its lease, thawed {when_thawed}", 1, crowd.assert_whole(rig)))


@pytest.mark.parametrize("seed", crowd.SEEDS)
def test_all_workers_are_replaced_one_after_another(rig: Rig, seed: str, record_property: Note):
    """As an upgrade does: each is told to stop, and hands over at once."""
    crowd.script(rig)
    running = [rig.process(concurrency=4) for _ in range(3)]
    rig.prompt()
    replaced = 0
    for _moment in crowd.at_moments(rig, random.Random(seed), 3):
        running.append(rig.process(concurrency=4))
        leaving = running.pop(0)
        leaving.close()
        assert leaving.process.exitcode == 0
        assert owners(rig).get(leaving.worker_id) is None
        replaced += 1
    crowd.until_rest(rig)
    assert rig.one("select count(*) from agentmesh.workers where ended_at is not null") == replaced
    record_property("fault", ("a worker told to stop, another started", replaced, crowd.assert_whole(rig)))
