"""Very many agents in one session: what a worker needs for those that wait, and what screens and lists read of them."""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg

from agentmesh.domain.ids import AgentId
from agentmesh.store import agents, board
from bench import scale_crowd
from bench.harness import Bench, Figure, Target, Values, ratio
from bench.machine import memory
from bench.pictures import Curve
from bench.place import Mesh
from bench.statements import rows_read, timed
from bench.waking import Waiters, waiters
from bench.worker import WorkerProcess

_GROUPS: Final = 100
"""Children of the root; all others are theirs."""
_SAMPLES: Final = 7
"""Of each statement that shows something, for each size."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """A session of many agents, some of which wait for anyone."""

    mesh: Mesh
    agents: int
    waiting: list[AgentId]
    group: AgentId


Show = Callable[..., Any]
"""A statement that shows something of a crowd."""


def run(bench: Bench) -> None:
    """Measure the crowd, then what is shown of crowds of growing sizes."""
    idle = bench.size(10_000, 500, 100_000)
    sizes = [100, 1_000, idle] if idle > 1_000 else [100, idle]
    with ExitStack() as stack:
        crowds = {size: _crowd(stack, bench, size) for size in sizes}
        crowds.update({100_000: crowds.pop(idle)} if idle == 100_000 else {})
        alone = waiters(stack, bench, 1)
        _waits(bench, alone, crowds[max(crowds)])
        _shown(bench, crowds)


def _crowd(stack: ExitStack, bench: Bench, size: int) -> Crowd:
    """Make a session of so many agents, of whatever size a tenth of them waiting."""
    mesh = stack.enter_context(bench.place.mesh(max_agents=1_000_000))
    groups = scale_crowd.fork_idle(mesh.bare, [mesh.root], min(_GROUPS, size // 10), "g")
    members = scale_crowd.fork_idle(mesh.bare, groups, size // len(groups) - 1, "m")
    chosen = random.sample(members, size // 10)
    scale_crowd.put_into_wait(mesh.bare, chosen)
    mesh.settle_storage()
    return Crowd(mesh, size, chosen, groups[0])


def _waits(bench: Bench, alone: Waiters, crowd: Crowd) -> None:
    waiting = len(crowd.waiting)
    figure = Figure(
        "crowd",
        f"one worker with {waiting:,} waiting agents in a session of {crowd.agents:,}",
        {
            "wake-up, one waiting alone": "ms",
            "wake-up, one of the crowd": "ms",
            "crowd / alone": "x",
            "memory of the worker": "MiB",
            "memory of one that has a single agent": "MiB",
            "until all waits were taken over": "s",
            "processor while nothing happens": "% of a core",
            "statements while nothing happens": "/s",
        },
        [
            Target("crowd / alone", "<=", 1.25),
            Target("memory of the worker", "<=", 300.0),
            Target("statements while nothing happens", "<=", 2.0),
        ],
        repetitions=1,
        note="The agents' rows are those that fork, a model's answer and the tool wait make, written by set-based SQL; "
        "the worker then takes them all over as after another's death. Wake-ups in turn, p50, as in P1.",
    )
    messages, still = bench.size(60, 5, 300), bench.size(5, 1, 20)

    def repeat() -> Values:
        began = time.monotonic()
        with WorkerProcess(crowd.mesh.url) as worker:
            crowd.mesh.until("select count(*) = %s from agentmesh.agents where worker_id is not null", waiting)
            taken_over = time.monotonic() - began
            _until_quiet(worker)
            before, at = worker.usage(), time.monotonic()
            time.sleep(still)
            after, took = worker.usage(), time.monotonic() - at
            here = Waiters(crowd.mesh, worker, crowd.waiting)
            ours, single = [], []
            for _ in range(messages):
                single.append(alone.message())
                ours.append(here.message())
            p50, single50 = statistics.median(ours) * 1e3, statistics.median(single) * 1e3
            return {
                "wake-up, one waiting alone": single50,
                "wake-up, one of the crowd": p50,
                "crowd / alone": ratio(p50, single50),
                "memory of the worker": memory(worker.pid) / 2**20,
                "memory of one that has a single agent": memory(alone.worker.pid) / 2**20,
                "until all waits were taken over": taken_over,
                "processor while nothing happens": (after["cpu"] - before["cpu"]) / took * 100,
                "statements while nothing happens": (after["statements"] - before["statements"]) / took,
            }

    bench.measure(repeat, figure)


def _until_quiet(worker: WorkerProcess) -> None:
    """Wait until the worker has looked at all that it took over: a second in which only its tick asked anything."""
    while True:
        before = worker.usage()["statements"]
        time.sleep(1.1)
        if worker.usage()["statements"] - before <= 2:  # a tick, at an edge two
            return


def _shown(bench: Bench, crowds: Mapping[int, Crowd]) -> None:
    largest = crowds[max(crowds)]
    shown: dict[str, Show] = {
        "ps, tree": lambda conn, crowd: agents.page(conn, crowd.mesh.session, 1000, 1000),
        "screen": lambda conn, crowd: board.agents(conn, crowd.mesh.session, [crowd.group]),
        "list_agents": lambda conn, crowd: agents.list_agents(conn, crowd.mesh.session, crowd.group, 201),
        "fork": lambda conn, crowd: agents.fork(conn, crowd.group, "one-more"),
    }
    times = {f"{what}: {size:,} agents": "ms" for what in shown for size in crowds}
    lists = [what for what in shown if what != "fork"]
    smaller, large = sorted(crowds)[-2:]
    rows = {f"{what}: rows read of {size:,}": "" for what in lists for size in (smaller, large)}
    more = {f"{what}: {large:,} / {smaller:,}": what for what in lists}
    command = f"agentmesh ps until its first line, {largest.agents:,} agents"
    figure = Figure(
        "shown",
        f"what lists, screens and forks take in a session of {largest.agents:,} agents",
        {**times, **rows, **dict.fromkeys(more, "x"), command: "s"},
        [
            *(Target(name, "<=", 2.0) for name in more),
            Target(command, "<=", 1.0),
        ],
        repetitions=3,
        ordinary=2,
        note=f"Statements as the program makes them, p50 of {_SAMPLES} each, the sizes in turn. In each session a "
        "tenth of the agents waits. The screen's is that of one agent in view. Rows as PostgreSQL counts them, of "
        "tables and through indexes; where a table is small, it walks it. ps prints the first 1,000. A fork counts the "
        "working agents of the session, because max_agents is exact: that grows.",
        picture=Curve(
            "agents in the session",
            {what: {size: f"{what}: {size:,} agents" for size in crowds} for what in shown},
        ),
    )

    def repeat() -> Values:
        values: dict[str, float] = {}
        with ExitStack() as stack:
            conns = {size: stack.enter_context(psycopg.connect(crowd.mesh.url)) for size, crowd in crowds.items()}
            for what, show in shown.items():
                took: dict[int, list[float]] = {size: [] for size in crowds}
                for size, crowd in crowds.items():  # first, so that all connections are warm
                    values[f"{what}: rows read of {size:,}"] = rows_read(conns[size], partial(show, crowd=crowd))
                for _ in range(_SAMPLES):
                    for size, crowd in crowds.items():
                        took[size].append(timed(conns[size], partial(show, crowd=crowd)))
                values |= {f"{what}: {size:,} agents": statistics.median(times) for size, times in took.items()}
        for name, what in more.items():
            values[name] = ratio(values[f"{what}: {large:,} agents"], values[f"{what}: {smaller:,} agents"])
        values[command] = _first_line(largest.mesh)
        return values

    bench.measure(repeat, figure)


def _first_line(mesh: Mesh) -> float:
    """Return the seconds until ``agentmesh ps`` has printed its first line."""
    began = time.perf_counter()
    ps = subprocess.Popen(
        [sys.executable, "-m", "agentmesh", "ps", "--session", str(mesh.session), "--database-url", mesh.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parent.parent,
    )
    assert ps.stdout is not None
    ps.stdout.readline()
    took = time.perf_counter() - began
    ps.stdout.read()
    if ps.wait():
        raise RuntimeError(f"agentmesh ps ended with {ps.returncode}")
    return took
