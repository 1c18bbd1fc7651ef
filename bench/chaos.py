"""P22: messages to waiting agents while connections, workers and the server are killed; how soon all is as before."""

from __future__ import annotations

import itertools
import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

import psycopg

from agentmesh.domain.errors import DatabaseError
from agentmesh.domain.ids import AgentId
from agentmesh.store import mailbox
from bench.harness import Bench, Figure, Target, Values, ratio
from bench.place import Mesh
from bench.waking import WAIT_FOR_ANYONE
from bench.worker import WorkerProcess

_AGENTS: Final = 16
_AT_MOST: Final = "at most"
_SHARE: Final = 0.5
"""Of what is taken at most, what is sent while faults are made."""
_FAULT: Final = 3.0
"""Seconds that a fault lasts."""
_GRACE: Final = 5.0
"""Seconds in which everything recovers."""
_LATE: Final = 1.0
"""Seconds by which a turn may be had late and still counts. Where it does not, a machine that stands still for 0.3 s
costs a window of 3 s as much as one agent of 16 that does not go on."""
_WARM: Final = 2.0
_EVEN: Final = 1.0
"""Seconds after which the load has its new pace."""
_LOOK: Final = 0.004
_HOSTS: Final = (
    "select w.pid from agentmesh.workers w join agentmesh.agents a on a.worker_id = w.id where a.parent_id is not null"
    " group by w.pid order by count(*) desc"
)
"""Processes that have agents, the one with the most first."""
_FREE: Final = (
    "select waiter from agentmesh.wait where not exists (select from agentmesh.mail"
    " where recipient = waiter and read_at is null and withdrawn_at is null)"
)
_CUT: Final = (
    "select pg_terminate_backend(pid) from (select pid from pg_stat_activity where datname = current_database()"
    " and application_name ~ '^agentmesh/(worker|listener)' order by random() limit 1) as one"
)
_NUMBER: Final = re.compile(r"#(\d+)#")


class Crowd:
    """Worker processes that can be killed, and the agents that they host."""

    def __init__(self, mesh: Mesh, workers: int) -> None:
        self.mesh = mesh
        self._workers = [WorkerProcess(mesh.url) for _ in range(workers)]
        for worker in self._workers:
            worker.next("ready")
        self.agents = [mesh.fork(mesh.root, WAIT_FOR_ANYONE) for _ in range(_AGENTS)]
        mesh.until("select count(*) = %s from agentmesh.wait", _AGENTS)

    def kill_one(self) -> None:
        """Kill the worker with the most agents as kill -9 does, and start another."""
        hosts = [pid for (pid,) in self.mesh.bare.execute(_HOSTS)]
        victim = min(self._workers, key=lambda worker: hosts.index(worker.pid) if worker.pid in hosts else len(hosts))
        victim.kill()
        self._workers.remove(victim)
        self._workers.append(WorkerProcess(self.mesh.url))

    def close(self) -> None:
        """Kill them all."""
        for worker in self._workers:
            worker.kill()


class Turns:
    """Who may be sent a message: each the same share, at even intervals.

    So an agent that does not go on is missed: the others do not get its turns, and it makes up for few of them. What
    is had counts for the moment at which the turn came.
    """

    def __init__(self, agents: Iterable[AgentId], per_second: float, now: float) -> None:
        """``per_second``: to all of them together; infinite: whoever is there."""
        everybody = list(agents)
        self._period = len(everybody) / per_second
        self.late = _LATE if self._period else 0.0
        """Seconds after which a turn that was not had is forfeited."""
        self._next = {agent: now + place / per_second for place, agent in enumerate(everybody)}
        self._had: list[float] = []
        """When those came that were had."""

    def due(self, now: float) -> set[AgentId]:
        """Return those whose turn has come."""
        return {agent for agent, at in self._next.items() if at <= now}

    def had(self, agent: AgentId, now: float) -> None:
        """Note that an agent had a turn: the oldest that is not forfeited."""
        came = max(self._next[agent], now - self.late)
        self._had.append(came)
        self._next[agent] = came + self._period

    def had_of(self, began: float, ended: float) -> int:
        """Return how many were had of the turns that came in this time."""
        return sum(began <= came < ended for came in list(self._had))


class Load:
    """Sends numbered messages on a thread, the next one to an agent when it has taken the last and waits again."""

    def __init__(self, crowd: Crowd) -> None:
        self._mesh = crowd.mesh
        self._agents = crowd.agents
        self.pace(float("inf"))
        self._numbers = itertools.count(1)
        self._stopping = threading.Event()
        self.sent = set[int]()
        """What was acknowledged."""
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._thread.start()

    def pace(self, per_second: float) -> None:
        """From now on send no more than this."""
        self._turns = Turns(self._agents, per_second, time.monotonic())

    def per_second(self, seconds: float) -> float:
        """Return the messages a second of the turns from now on, each of which was preceded by one that was taken."""
        turns, began = self._turns, time.monotonic()
        time.sleep(seconds + turns.late)
        return turns.had_of(began, began + seconds) / seconds

    def stop(self) -> None:
        """Send no more."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        conn: psycopg.Connection | None = None
        while not self._stopping.wait(_LOOK):
            turns = self._turns
            if not (due := turns.due(time.monotonic())):
                continue
            try:
                conn = conn or psycopg.connect(self._mesh.url, autocommit=True)
                free = [AgentId(waiter) for (waiter,) in conn.execute(_FREE) if waiter in due]
            except psycopg.OperationalError:
                conn = None
                continue
            for agent in free:
                self._send(agent)
                turns.had(agent, time.monotonic())

    def _send(self, agent: AgentId) -> None:
        number = next(self._numbers)
        while not self._stopping.is_set():
            with suppress(DatabaseError):  # again with its key: once, whether the first was committed or not
                self._mesh.database.run(mailbox.send, self._mesh.root, agent, f"#{number}#", str(number))
                self.sent.add(number)
                return


def _cut(crowd: Crowd) -> None:
    for _ in range(int(_FAULT * 2)):
        crowd.mesh.bare.execute(_CUT)
        time.sleep(0.5)


def _crash(crowd: Crowd) -> None:
    """A backend that is killed takes the whole server down: all connections are cut, and it recovers from its log."""
    with psycopg.connect(crowd.mesh.url) as victim, suppress(psycopg.OperationalError):
        os.kill(victim.info.backend_pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    with suppress(psycopg.OperationalError):
        while time.monotonic() < deadline:  # until our own is cut too
            crowd.mesh.bare.execute("select")
    while time.monotonic() < deadline:
        with suppress(psycopg.OperationalError):
            crowd.mesh.reconnect()
            return
        time.sleep(0.05)
    raise TimeoutError("the server did not come back within a minute")


def _exhaust(crowd: Crowd) -> None:
    taken = []
    with suppress(psycopg.OperationalError):
        while True:
            taken.append(psycopg.connect(crowd.mesh.url))
    time.sleep(_FAULT)
    for conn in taken:
        conn.close()


def _kill_once(crowd: Crowd) -> None:
    crowd.kill_one()


def _kill_often(crowd: Crowd) -> None:
    for _ in range(3):
        crowd.kill_one()
        time.sleep(_FAULT / 3)


_FAULTS: Final[Mapping[str, Callable[[Crowd], None]]] = {
    "a crash of the server": _crash,
    "two connections cut a second": _cut,
    "no connection left": _exhaust,
    "one worker of two killed": _kill_once,
    "a worker killed every second": _kill_often,
}


def run(bench: Bench) -> None:
    """Measure P22."""
    window = bench.size(3, 1, 15)
    figure = Figure(
        "P22",
        f"messages taken a second, {_GRACE:g} s after a fault against before",
        {
            _AT_MOST: "messages/s",
            "before": "messages/s",
            **dict.fromkeys(_FAULTS, "x"),
            "lost": "",
            "taken twice": "",
            f"{_AT_MOST}, after all against before": "x",
        },
        [
            *(Target(fault, ">=", 0.95) for fault in _FAULTS),
            Target("lost", "==", 0),
            Target("taken twice", "==", 0),
        ],
        repetitions=3,
        ordinary=1,
        note=f"{_AGENTS} agents on two workers, each waits and is sent its next message when it waits again, at even "
        f"intervals: {_SHARE:.0%} of what they take at most, so that the machine's speed, which swings, does not "
        "count, and an agent that does not go on does: no other takes its part. A turn counts if it is had "
        f"within {_LATE:g} s, the first ones {_GRACE:g} s after the fault. The faults follow one another under this "
        f"load; rates over {window} s, each compared with the one before them all. Killed is always the worker with "
        "the most agents. Lost: acknowledged, and in no agent's conversation at the end.",
    )

    def repeat() -> Values:
        with _loaded(bench) as (crowd, load):
            time.sleep(_WARM)
            at_most = load.per_second(window)
            pace = at_most * _SHARE
            load.pace(pace)
            time.sleep(_EVEN)
            before = load.per_second(window)
            usual = max(before, pace)  # where others disturb before, it is no lower demand
            found = {}
            for name, fault in _FAULTS.items():
                fault(crowd)
                time.sleep(_GRACE - _LATE)  # the first turn that counts may be had until then
                found[name] = ratio(load.per_second(window), usual)
            load.pace(float("inf"))
            again = ratio(load.per_second(window), at_most)
            load.stop()
            found |= {f"{_AT_MOST}, after all against before": again, **_account(crowd.mesh, load)}
            return {_AT_MOST: at_most, "before": before, **found}

    bench.measure(repeat, figure)


def _account(mesh: Mesh, load: Load) -> dict[str, float]:
    """Wait until all is taken; compare what was acknowledged with what stands in the conversations."""
    mesh.until("select not exists (select from agentmesh.mail where sender = %s and read_at is null)", mesh.root)
    results = mesh.bare.execute("select content::text from agentmesh.transcript where kind = 'tool_result'")
    shown = Counter(int(number) for (content,) in results for number in _NUMBER.findall(content))
    return {"lost": len(load.sent - shown.keys()), "taken twice": sum(times > 1 for times in shown.values())}


@contextmanager
def _loaded(bench: Bench) -> Iterator[tuple[Crowd, Load]]:
    with bench.place.mesh() as mesh:
        crowd = Crowd(mesh, 2)
        load = Load(crowd)
        try:
            yield crowd, load
        finally:
            load.stop()
            crowd.close()
