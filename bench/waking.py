"""P1, P2, P3: one message to an agent inside a wait, with 1, 100 and 1,000 agents waiting in the same process."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from agentmesh.domain.ids import AgentId
from agentmesh.store import mailbox
from agentmesh.store.sizes import POOL_SIZE
from bench.floor import Floor
from bench.harness import Bench, Figure, Target, Values, percentile, ratio
from bench.machine import memory
from bench.pictures import Bars, Curve, Wanted
from bench.place import Mesh
from bench.puppet import instruction
from bench.worker import WorkerProcess

_PAUSE: Final = 0.01
_BODY: Final = "x" * 100
WAIT_FOR_ANYONE: Final = instruction(("wait", {"timeout": 3600}), repeat=True)


@dataclass(frozen=True, slots=True)
class Waiters:
    """Agents inside a wait for anyone, hosted by one worker process; each waits again after a message."""

    mesh: Mesh
    worker: WorkerProcess
    agents: Sequence[AgentId]

    def message(self) -> float:
        """Send one of them a message; return the seconds until its tool result was committed."""
        agent = random.choice(self.agents)
        self.mesh.until("select exists (select from agentmesh.wait where waiter = %s)", agent)
        time.sleep(_PAUSE)
        began = time.monotonic_ns()
        self.mesh.database.run(mailbox.send, self.mesh.root, agent, _BODY)
        return float(self.worker.next("taken", agent)["at"] - began) / 1e9


def waiters(stack: ExitStack, bench: Bench, count: int) -> Waiters:
    """Put so many agents into waits through the engine, in a database of their own."""
    mesh = stack.enter_context(bench.place.mesh())
    agents = [mesh.fork(mesh.root, WAIT_FOR_ANYONE) for _ in range(count)]
    worker = stack.enter_context(WorkerProcess(mesh.url))
    mesh.until("select count(*) = %s from agentmesh.wait", count)
    mesh.settle_storage()
    return Waiters(mesh, worker, agents)


def run(bench: Bench) -> None:
    """Measure P1 to P3."""
    counts = (1, 100, bench.size(1000, 200))
    with ExitStack() as stack:
        crowds = {count: waiters(stack, bench, count) for count in counts}
        floor = stack.enter_context(Floor(crowds[1].mesh.url))
        _p1(bench, crowds)
        _p2(bench, crowds)
        _p3(bench, crowds[1], floor)


def _p1(bench: Bench, crowds: dict[int, Waiters]) -> None:
    one, *_, most = crowds
    figure = Figure(
        "P1",
        f"wake-up of one of {most:,} waiting agents against the only one",
        {**{f"{count} waiting, p50": "ms" for count in crowds}, f"{most} / {one}": "x"},
        [Target(f"{most} / {one}", "<=", 1.25)],
        note="From the call of send until the waiting agent's tool result was committed by its worker, another "
        "process.",
        picture=Curve("agents waiting", {"agentmesh": {count: f"{count} waiting, p50" for count in crowds}}),
    )
    messages = bench.size(60, 10, 100)

    def repeat() -> Values:
        times: dict[int, list[float]] = {count: [] for count in crowds}
        for _ in range(messages):  # in turn, so that whatever disturbs, disturbs all
            for count, crowd in crowds.items():
                times[count].append(crowd.message())
        median = {count: statistics.median(found) * 1e3 for count, found in times.items()}
        shown = {f"{count} waiting, p50": value for count, value in median.items()}
        return {**shown, f"{most} / {one}": ratio(median[most], median[one])}

    bench.measure(repeat, figure)


def _p2(bench: Bench, crowds: dict[int, Waiters]) -> None:
    units = {f"{count} waiting: {what}": "" for count in crowds for what in ("listening", "all connections")}
    sizes = {f"{count} waiting: memory of the worker": "MiB" for count in crowds}
    figure = Figure(
        "P2",
        "database connections of a worker process",
        {**units, **sizes},
        [Target(name, "==", 1) if "listening" in name else Target(name, "<=", 2 + POOL_SIZE) for name in units],
        repetitions=1,
        note=f"Counted in pg_stat_activity. The pool has at most {POOL_SIZE} connections.",
    )

    def repeat() -> Values:
        found: dict[str, float] = {}
        for count, crowd in crowds.items():
            pid = str(crowd.worker.pid)
            query = (
                "select count(*) from pg_stat_activity where datname = current_database() and application_name like %s"
            )
            found[f"{count} waiting: listening"] = crowd.mesh.one(query, f"agentmesh/listener/{pid}")
            found[f"{count} waiting: all connections"] = crowd.mesh.one(query, f"agentmesh/%/{pid}")
            found[f"{count} waiting: memory of the worker"] = memory(crowd.worker.pid) / 2**20
        return found

    bench.measure(repeat, figure)


def _p3(bench: Bench, crowd: Waiters, floor: Floor) -> None:
    figure = Figure(
        "P3",
        "send until the waiting agent's tool result is committed, against the thin floor",
        {"agentmesh p50": "ms", "floor p50": "ms", "agentmesh / floor": "x", "agentmesh p99": "ms", "floor p99": "ms"},
        [
            Target("agentmesh / floor", "<=", 2.0),
            Target("agentmesh p50", "<=", 4.0),
            Target("agentmesh p99", "<=", 25.0),
        ],
        note="Both durable, two processes each. The floor (bench/floor.py) inserts and notifies, takes and stores a "
        "result: no agents, no rules. 4 and 25 ms are guards; P3 peers has the comparison with DBOS and others.",
        picture=Bars(
            {
                "agentmesh p50": "agentmesh: read and its tool's result stored in one commit",
                "floor p50": "bare psycopg",
            },
            Wanted("≤ 2 × bare", 2.0, "floor p50"),
        ),
    )
    messages = bench.size(120, 15, 150)

    def repeat() -> Values:
        ours, thin = [], []
        for _ in range(messages):
            ours.append(crowd.message())
            time.sleep(_PAUSE)
            thin.append(floor.message(_BODY))
        p50, thin50 = statistics.median(ours) * 1e3, statistics.median(thin) * 1e3
        return {
            "agentmesh p50": p50,
            "floor p50": thin50,
            "agentmesh / floor": ratio(p50, thin50),
            "agentmesh p99": percentile(ours, 0.99) * 1e3,
            "floor p99": percentile(thin, 0.99) * 1e3,
        }

    bench.measure(repeat, figure)
