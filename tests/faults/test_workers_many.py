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
    again = "select exists (select from agentmesh.workers where pid = %s and id <> %s and ended_at is null)"
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


def waiters(rig: Rig, count: int, go_on: threading.Event) -> list[str]:
    """Make agents that wait for a message, then hold their next answer back; one slot is enough for all."""
    names = [f"w{n}" for n in range(count)]
    rig.root = rig.session(max_children=count)
    for name in names:
        rig.fork(name, "x")
        rig.script(name, do(call("wait", timeout=600)), when(go_on, say(f"{name} is done")))
    return names


def until_all_wait(rig: Rig, names: list[str]) -> None:
    """Wait until each of them is inside its wait and no thread has it."""
    rig.until(lambda: rig.one("select count(*) from agentmesh.wait") == len(names), "their waits")


def wake_all(rig: Rig) -> None:
    """Write to all of them in one commit."""
    rig.conn.execute("select agentmesh.send(null, id, 'x') from agentmesh.agents where depth = 1")


def test_after_a_wait_of_many_two_workers_share_the_work(rig: Rig, record_property: Note):
    """They all wait with the first worker, which has one slot, when the second comes."""
    go_on = threading.Event()
    names = waiters(rig, 12, go_on)
    first = rig.process(concurrency=1)
    until_all_wait(rig, names)
    second = rig.process(concurrency=1)
    assert owners(rig) == {first.worker_id: len(names)}
    wake_all(rig)
    both = {first.worker_id: 1, second.worker_id: 1}
    rig.until(lambda: owners(rig) == both, "one agent with each worker, and the others with nobody")
    rig.until(lambda: sum(len(rig.requests(name)) for name in names) == len(names) + 2, "two model calls at once")
    go_on.set()
    rig.rest()
    assert [rig.last(name) for name in names] == [(f"{name} is done", None) for name in names]
    record_property("fault", ("twelve waits of one worker end at once, another is idle", 1, {}))


def test_a_worker_that_is_alone_keeps_whoever_waits_for_its_thread(rig: Rig):
    go_on = threading.Event()
    names = waiters(rig, 6, go_on)
    alone = rig.process(concurrency=1)
    until_all_wait(rig, names)
    wake_all(rig)
    rig.until(lambda: rig.one("select count(*) from agentmesh.wait") == 0, "the ends of their waits")
    assert owners(rig) == {alone.worker_id: len(names)}
    go_on.set()
    rig.rest()
    assert rig.one("select array_agg(distinct epoch) from agentmesh.agents where depth = 1") == [1], "claimed once"


def test_what_happens_to_agents_while_they_are_offered(rig: Rig):
    """One is interrupted, one killed, one gets mail, in the instants before and after they are given back."""
    go_on = threading.Event()
    names = waiters(rig, 8, go_on)
    moments: list[str] = []

    def hurt(moment: str, name: str) -> None:
        if name == "give_back" and moment not in moments:
            moments.append(moment)
            interrupted, killed, written = names[1:4] if moment == "before" else names[4:7]
            rig.interrupt(interrupted)
            rig.kill(killed)
            rig.prompt("more", written)

    rig.worker(concurrency=1, hook=hurt)
    until_all_wait(rig, names)
    rig.process(concurrency=1)
    wake_all(rig)
    rig.until(lambda: "after" in moments, "the offer")
    for name in (names[1], names[4]):  # no thread is free: it stops all the same
        rig.until(lambda: rig.status(name) == "idle", f"the interrupt of {name}")  # noqa: B023
    go_on.set()
    rig.rest()
    ends = [(rig.status(name), rig.last(name)[1] if rig.status(name) == "idle" else None) for name in names]
    stopped, dead, fine = ("idle", "interrupted by the user"), ("dead", None), ("idle", None)
    assert ends == [fine, stopped, dead, fine, stopped, dead, fine, fine]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_worker_is_killed_as_it_gives_agents_back(rig: Rig, moment: str, record_property: Note):
    go_on = threading.Event()
    names = waiters(rig, 8, go_on)
    dying = rig.process(f"{moment} give_back 1", concurrency=1)
    until_all_wait(rig, names)
    rig.process(concurrency=1)
    wake_all(rig)
    assert dying.join() == -signal.SIGKILL
    go_on.set()
    rig.rest()
    assert [rig.last(name) for name in names] == [(f"{name} is done", None) for name in names]
    assert [heard(rig, name) for name in names] == [["x"]] * len(names), "each message once"
    record_property("fault", (f"killed right {moment} it gave agents back", 1, {}))


def heard(rig: Rig, name: str) -> list[str]:
    """Return the messages that the only wait of an agent ended with."""
    (result,) = rig.results("wait", name)
    return [entry["message"] for entry in result["results"]]
