"""Several worker processes: model calls per second from one to four, and what PostgreSQL does meanwhile."""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
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
"""That are measured together; in each, agents that are new do the same."""
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


class Samples:
    """Looks at the server's busy connections, often, on a thread and a connection of its own."""

    def __init__(self, url: str) -> None:
        self.waits: Counter[str] = Counter()
        self.statements: Counter[str] = Counter()
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

    def share(self, waits: Iterable[str]) -> float:
        """Return in how many of a hundred samples of a busy connection it did one of these."""
        return 100 * ratio(sum(self.waits[wait] for wait in waits), self.waits.total()) if self.waits else 0.0

    def _run(self) -> None:
        while not self._stopping.wait(_EVERY):
            for wait, statement in self._connection.execute(_ACTIVE):
                self.waits[wait] += 1
                self.statements[statement] += 1


def run(bench: Bench) -> None:
    """Measure it."""
    (bench.place.folder / NOTE).write_text("one line\n")
    several = [1, 2] if bench.quick else list(range(1, _MOST + 1)) if bench.full else [1, 2, _MOST]
    figure = Figure(
        "workers",
        f"model calls per second with 1 to {several[-1]} worker processes",
        {
            **{_name(count): "/s" for count in several},
            f"{several[-1]} / 1": "x",
            **{
                f"{_name(count)}: {who}": "ms per call"
                for count in several
                for who in ("workers", "database", "model server")
            },
            **{f"{_name(several[-1])}, connections {what}": "%" for what in _WAITS},
        },
        [Target(f"{several[-1]} / 1", ">=", 0.9)],
        repetitions=3,
        ordinary=1,
        note="",
        picture=Curve("worker processes", {"model calls per second": {count: _name(count) for count in several}}),
    )
    # More agents than all slots: else the first workers claim all of them, and the last has none.
    agents, slots = bench.size(40, 6, 200), bench.size(8, 2)
    statements: Counter[str] = Counter()
    warmed: Counter[int] = Counter()
    with ExitStack() as stack:
        models = stack.enter_context(ModelServer())

        def repeat() -> Values:
            values: dict[str, float] = {}
            for count in several:
                with bench.place.mesh() as mesh, ExitStack() as running:
                    starting = [
                        WorkerProcess(mesh.url, concurrency=slots, base_url=models.base_url) for _ in range(count)
                    ]
                    workers = [running.enter_context(worker) for worker in starting]
                    warmed[count] = max(warmed[count], _warm(mesh, workers, agents))
                    crowds = [_fork(mesh, agents) for _ in range(bench.size(_ROUNDS, 1))]
                    mesh.settle_storage()
                    roots = {
                        "workers": [worker.pid for worker in workers],
                        "database": [bench.place.server_pid],
                        "model server": [models.pid],
                    }
                    before = {who: tree_seconds(pids) for who, pids in roots.items()}
                    with Samples(mesh.url) as samples:
                        took = sum(_let_work(mesh, crowd) for crowd in crowds)
                    calls = len(crowds) * agents * CHILD_CALLS
                    values[_name(count)] = calls / took
                    for who, pids in roots.items():
                        values[f"{_name(count)}: {who}"] = (tree_seconds(pids) - before[who]) / calls * 1e3
            statements.update(samples.statements)
            for what, waits in _WAITS.items():
                values[f"{_name(several[-1])}, connections {what}"] = samples.share(waits)
            most = ", ".join(f"{name} {100 * n / statements.total():.0f} %" for name, n in statements.most_common(5))
            rounds = ", ".join(map(str, warmed.values()))
            figure.note = (
                f"{agents} agents of one session, {CHILD_CALLS} streamed model calls each, three of them for a tool, "
                f"{slots} at once in each worker; new agents in each of {bench.size(_ROUNDS, 1)} rounds, whose calls "
                f"and seconds are added up. All is warm: before them came as many rounds (here up to {rounds}) as it "
                "took until every worker did its part and none was faster than the ones before, so libraries are "
                "imported, connections open, and their plans made. Workers, database and simulator share the "
                "processors: where their milliseconds per call add up to all there are, more workers add nothing. "
                f"Busy connections were sampled every {_EVERY * 1e3:g} ms; most often they ran: {most}."
            )
            return {**values, f"{several[-1]} / 1": ratio(values[_name(several[-1])], values[_name(1)])}

        bench.measure(repeat, figure)


def _name(count: int) -> str:
    return "1 worker" if count == 1 else f"{count} workers"


def _fork(mesh: Mesh, agents: int) -> list[AgentId]:
    """Make so many new agents: with a conversation that grows from round to round, calls would grow too."""
    return scale_crowd.fork_idle(mesh.bare, [mesh.root], agents, f"w{next(_crowds)}")


def _warm(mesh: Mesh, workers: Sequence[WorkerProcess], agents: int) -> int:
    """Let them work until all is warm; return the rounds that it took."""
    seconds: list[float] = []
    for n in range(1, _WARM_MOST + 1):
        before = [worker.usage()["statements"] for worker in workers]
        seconds.append(_let_work(mesh, _fork(mesh, agents)))
        did = [worker.usage()["statements"] - then for worker, then in zip(workers, before, strict=True)]
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


def _let_work(mesh: Mesh, agents: list[AgentId]) -> float:
    """Give all of them their task in one commit; return the seconds until the last is idle."""
    began = time.monotonic()
    mesh.bare.execute("select agentmesh.send(null, id, %s) from unnest(%s) as id", [WORK, agents])
    mesh.until(
        "select not exists (select from agentmesh.agents where status = 'running' and session_id = %s)", mesh.session
    )
    took = time.monotonic() - began
    failed = mesh.one("select count(*) from agentmesh.transcript where kind = 'error'")
    if failed:
        raise RuntimeError(f"{failed} agents failed")
    return took
