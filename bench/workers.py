"""Several worker processes: model calls per second from one to four, and what PostgreSQL does meanwhile.

One, two and four are alive at once, each in a mesh of their own, and work in turn: the machine's speed swings by the
minute, and what is measured half a minute later is not comparable. Four more have a mesh each, and so no row in common:
what they do less than one is the price of four processes, what four of one session do less than they that of sharing.
"""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

import psycopg

from agentmesh.domain.ids import AgentId
from bench import scale_crowd
from bench.harness import Bench, Figure, Target, Values, ratio
from bench.machine import tree_seconds
from bench.model_server import CHILD_CALLS, NOTE, WORK, ModelServer
from bench.pictures import Curve
from bench.place import Mesh
from bench.worker import WorkerProcess

_MOST: Final = 4
_ROUNDS: Final = 6
"""Of each crew that are measured together; in each, agents that are new do the same."""
_WARM_MOST: Final = 10
"""Rounds before them, at most."""
_LAST: Final = 2
_STEADY: Final = 1.05
"""One of the last rounds that is so many times as fast as the fastest before shows that all is not warm yet."""
_PART: Final = 0.25
"""Of an equal share: a worker that executes fewer of a round's statements took no part in it."""
_EVERY: Final = 0.01
_ACTIVE: Final = (
    r"select coalesce(wait_event_type || ': ' || wait_event, 'processor'),"
    r" coalesce(substring(query from 'agentmesh\.\w+'), 'others')"
    " from pg_stat_activity where datname = current_database() and state = 'active' and pid <> pg_backend_pid()"
)
_WAITS: Final = {
    "working": ("processor",),
    "waiting for the log's flush": ("IO: WalSync", "LWLock: WALWrite"),
    "waiting for their turn to notify": ("Lock: object",),
    "waiting for a row (the session's budget)": ("Lock: tuple", "Lock: transactionid"),
}
"""What its busy connections do, and the samples that tell."""
_crowds = itertools.count(1)

Crowd = list[tuple[Mesh, list[AgentId]]]
"""The agents of a round, by their mesh."""


class Samples:
    """Looks at the server's busy connections, often, on a thread and a connection of its own."""

    def __init__(self, url: str, seen: Counter[tuple[str, str]]) -> None:
        """``seen`` counts what they do, with the function that they do it for."""
        self._seen = seen
        self._connection = psycopg.connect(url, autocommit=True)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="samples", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()
        self._connection.close()

    def _run(self) -> None:
        while not self._stopping.wait(_EVERY):
            self._seen.update(self._connection.execute(_ACTIVE).fetchall())


@dataclass(slots=True)
class Done:
    """What the measured rounds of a crew came to."""

    calls: int = 0
    seconds: float = 0.0
    used: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Processor seconds, by who used them."""
    seen: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Samples of busy connections: what each did, and for which function."""

    def values(self, name: str) -> dict[str, float]:
        """Return calls per second, and what each side used for one."""
        each = {f"{name}: {who}": used / self.calls * 1e3 for who, used in self.used.items()}
        return {name: self.calls / self.seconds, **each}

    def share(self, waits: Collection[str]) -> float:
        """Return in how many of a hundred samples of a busy connection it did one of these."""
        return 100 * sum(n for (wait, _), n in self.seen.items() if wait in waits) / max(self.seen.total(), 1)

    def statements(self) -> str:
        """Say for which functions connections were busy most often."""
        often = Counter[str]()
        for (_, statement), n in self.seen.items():
            often[statement] += n
        return ", ".join(f"{name} {100 * n / often.total():.0f} %" for name, n in often.most_common(5))


class Crew:
    """So many workers in a mesh of their own, or each in one."""

    def __init__(
        self, meshes: Sequence[Mesh], workers: Sequence[WorkerProcess], agents: int, others: Mapping[str, int]
    ) -> None:
        """``agents``: of a round, the same number in each mesh; ``others``: the processes that work for them."""
        self._meshes, self._workers, self._agents = meshes, workers, agents
        self._pids = {"workers": [worker.pid for worker in workers], **{who: [pid] for who, pid in others.items()}}
        self._crowds: list[Crowd] = []

    def get_ready(self, rounds: int) -> int:
        """Make the agents of the rounds, and let the workers work until all is warm; return how many rounds it took."""
        self._crowds = [_fork(self._meshes, self._agents) for _ in range(rounds)]
        return _warm(self._meshes, self._workers, self._agents)

    def work(self, done: Done) -> None:
        """Measure a round, and add it to what is done."""
        crowd = self._crowds.pop()
        before = {who: tree_seconds(pids) for who, pids in self._pids.items()}
        with Samples(self._meshes[0].url, done.seen):
            done.seconds += _let_work(crowd)
        done.calls += sum(len(agents) for _, agents in crowd) * CHILD_CALLS
        for who, pids in self._pids.items():
            done.used[who] += tree_seconds(pids) - before[who]


def run(bench: Bench) -> None:
    """Measure it."""
    (bench.place.folder / NOTE).write_text("one line\n")
    several = [1, 2] if bench.quick else list(range(1, _MOST + 1)) if bench.full else [1, 2, _MOST]
    most, apart = _name(several[-1]), f"{_name(several[-1])} apart"
    crews = {**{_name(count): [count] for count in several}, apart: [1] * several[-1]}
    figure = Figure(
        "workers",
        f"model calls per second with 1 to {several[-1]} worker processes",
        {
            **dict.fromkeys(crews, "/s"),
            f"{most} / 1": "x",
            f"{most} / apart": "x",
            **{f"{name}: {who}": "ms per call" for name in crews for who in ("workers", "database", "model server")},
            **{f"{most}, connections {what}": "%" for what in _WAITS},
        },
        [Target(f"{most} / apart", ">=", 0.85)],
        repetitions=3,
        ordinary=1,
        note="",
        picture=Curve("worker processes", {"model calls per second": {count: _name(count) for count in several}}),
    )
    # More agents than all slots: else the first workers claim all of them, and the last has none.
    agents, slots, rounds = bench.size(30, 6, 200), bench.size(8, 2), bench.size(_ROUNDS, 1)

    def repeat() -> Values:
        done = {name: Done() for name in crews}
        with ExitStack() as stack:
            models = stack.enter_context(ModelServer())
            others = {"database": bench.place.server_pid, "model server": models.pid}
            here: dict[str, Crew] = {}
            for name, counts in crews.items():
                meshes = [stack.enter_context(bench.place.mesh()) for _ in counts]
                starting = [
                    WorkerProcess(mesh.url, concurrency=slots, base_url=models.base_url)
                    for mesh, count in zip(meshes, counts, strict=True)
                    for _ in range(count)
                ]
                here[name] = Crew(meshes, [stack.enter_context(worker) for worker in starting], agents, others)
            warmed = [crew.get_ready(rounds) for crew in here.values()]
            for _ in range(rounds):
                for name, crew in here.items():
                    crew.work(done[name])
        figure.note = (
            f"{agents} agents of one session, {CHILD_CALLS} streamed model calls each, three of them for a tool, "
            f"{slots} at once in each worker; new agents in each of {rounds} rounds, whose calls and seconds are "
            "added up. Each number of workers has a mesh of its own; apart: each worker has one, with its share of the "
            "agents, so they have no row in common. A round of one is followed by a round of the next, so that all "
            "see the same machine, whose speed swings. All is warm: before them came as many rounds "
            f"(here {', '.join(map(str, warmed))}) as it took until every worker did its part and none was faster than "
            "the ones before, so libraries are imported, connections open, and their plans made. Workers, database and "
            "simulator share the processors: where their milliseconds per call add up to all there are, more workers "
            f"add nothing, and as processes take turns each call costs more, apart or not. Busy connections of {most} "
            f"were sampled every {_EVERY * 1e3:g} ms; most often they ran: {done[most].statements()}."
        )
        values = {name: value for name in crews for name, value in done[name].values(name).items()}
        waited = {f"{most}, connections {what}": done[most].share(waits) for what, waits in _WAITS.items()}
        ratios = {
            f"{most} / 1": ratio(values[most], values[_name(1)]),
            f"{most} / apart": ratio(values[most], values[apart]),
        }
        return {**values, **waited, **ratios}

    bench.measure(repeat, figure)


def _name(count: int) -> str:
    return "1 worker" if count == 1 else f"{count} workers"


def _fork(meshes: Sequence[Mesh], agents: int) -> Crowd:
    """Make so many new agents: with a conversation that grows from round to round, calls would grow too."""
    each = agents // len(meshes)
    return [(mesh, scale_crowd.fork_idle(mesh.bare, [mesh.root], each, f"w{next(_crowds)}")) for mesh in meshes]


def _warm(meshes: Sequence[Mesh], workers: Sequence[WorkerProcess], agents: int) -> int:
    """Let them work until all is warm; return the rounds that it took."""
    seconds: list[float] = []
    for n in range(1, _WARM_MOST + 1):
        before = [worker.usage()["statements"] for worker in workers]
        seconds.append(_let_work(_fork(meshes, agents)))
        did = [worker.usage()["statements"] - then for worker, then in zip(workers, before, strict=True)]
        if n == 1:
            for mesh in meshes:
                mesh.settle_storage()  # not at the end: each connection would have to make its plans again
        if steady(seconds) and all_take_part(did):
            return n
    if not all_take_part(did):
        raise RuntimeError(f"a worker took no part in round {n}: they executed {did} statements")
    return n


def steady(seconds: Sequence[float]) -> bool:
    """Whether the last two rounds were no faster than the ones before."""
    return len(seconds) > _LAST and min(seconds[:-_LAST]) <= _STEADY * min(seconds[-_LAST:])


def all_take_part(statements: Sequence[int]) -> bool:
    """Whether each worker did its part of a round: one that has no agent executes some statements too."""
    return min(statements) >= _PART * statistics.mean(statements)


def _let_work(crowd: Crowd) -> float:
    """Give all of them their task, one commit for a mesh; return the seconds until the last is idle."""
    began = time.monotonic()
    for mesh, agents in crowd:
        mesh.bare.execute("select agentmesh.send(null, id, %s) from unnest(%s) as id", [WORK, agents])
    for mesh, _ in crowd:
        mesh.until(
            "select not exists (select from agentmesh.agents where status = 'running' and session_id = %s)",
            mesh.session,
        )
    took = time.monotonic() - began
    failed = sum(mesh.one("select count(*) from agentmesh.transcript where kind = 'error'") for mesh, _ in crowd)
    if failed:
        raise RuntimeError(f"{failed} agents failed")
    return took
