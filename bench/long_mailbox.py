"""P19: many messages through one mailbox, one after another: whether the last takes as long as the first.

First undisturbed; then while a snapshot is held, as a forgotten transaction does, and after it was released.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Final

import psycopg

from agentmesh.store import external, mailbox, waits, workers
from bench.harness import Bench, Figure, Target, Values, ratio
from bench.pictures import Curve
from bench.place import HOST, USER, Mesh

_BODY: Final = "x" * 100
_WINDOW: Final = 100
_PATIENCE: Final = 60.0
_ROOM: Final = 1.3


def run(bench: Bench) -> None:
    """Measure P19."""
    with bench.place.mesh() as mesh:
        me = mesh.database.run(workers.join, workers.Identity(HOST, USER, os.getpid(), 1, ()))
        names = iter(range(1_000_000))

        def new_mailbox() -> Callable[[], float]:
            agent = mesh.database.run(external.guest, mesh.session, f"client{next(names)}")
            lease = mesh.database.run(external.join, me, agent)

            def message() -> float:
                began = time.perf_counter()
                mesh.database.run(mailbox.send, mesh.root, agent, _BODY)
                taken = mesh.database.run(waits.wait_begin, agent, None, 0, lease)
                if not taken or not taken["results"]:
                    raise RuntimeError(f"the message was not there: {taken}")
                return (time.perf_counter() - began) * 1e3

            return message

        _growth(bench, mesh, new_mailbox)
        _held(bench, mesh, new_mailbox)


def _growth(bench: Bench, mesh: Mesh, new_mailbox: Callable[[], Callable[[], float]]) -> None:
    messages = bench.size(2500, 100, 50_000)
    tenth = messages // 10
    steps = {(n + 1) * tenth: f"up to {(n + 1) * tenth:,}" for n in range(10)}
    first, last = steps[tenth], steps[10 * tenth]
    figure = Figure(
        "P19",
        f"{messages:,} messages through one mailbox, each sent and then taken by its agent",
        {**dict.fromkeys(steps.values(), "ms"), "last tenth / first": "x"},
        [Target("last tenth / first", "<=", _ROOM)],
        repetitions=1,
        note="Send and take, two commits: the median of each tenth. The agent is an external one, so that no worker's "
        "loop is in it. A full run has 50,000 messages.",
        picture=Curve("messages so far", {"agentmesh": dict(list(steps.items())[::3])}),
    )

    def repeat() -> Values:
        message = new_mailbox()
        mesh.settle_storage()
        found = {name: statistics.median(message() for _ in range(tenth)) for name in steps.values()}
        return {**found, "last tenth / first": ratio(found[last], found[first])}

    bench.measure(repeat, figure)


def _held(bench: Bench, mesh: Mesh, new_mailbox: Callable[[], Callable[[], float]]) -> None:
    seconds = float(bench.size(4, 1, 60))
    figure = Figure(
        "P19 held",
        f"the same while a snapshot is held for {seconds:g} s, and after",
        {"before": "ms", "at its end": "ms", "at its end / before": "x", "back after": "s"},
        [Target("back after", "<=", _PATIENCE)],
        repetitions=1,
        note=f"Medians of {_WINDOW} messages. What a snapshot may still see cannot be cleaned away, so that a "
        f"mailbox's index grows. Back after: from the release until at most {_ROOM:g} × before.",
    )

    def repeat() -> Values:
        message = new_mailbox()
        mesh.settle_storage()

        def window() -> float:
            return statistics.median(message() for _ in range(_WINDOW))

        before = window()
        with psycopg.connect(mesh.url) as holder:
            holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            holder.execute("select count(*) from agentmesh.sessions")
            until = time.perf_counter() + seconds
            end = window()
            while time.perf_counter() < until:
                end = window()
            holder.rollback()
        released = time.perf_counter()
        while window() > _ROOM * before and time.perf_counter() < released + _PATIENCE:
            pass
        return {
            "before": before,
            "at its end": end,
            "at its end / before": ratio(end, before),
            "back after": time.perf_counter() - released,
        }

    bench.measure(repeat, figure)
