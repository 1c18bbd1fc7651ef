"""P9: what it costs to do nothing: agents blocked in a wait."""

from __future__ import annotations

import time
from contextlib import ExitStack

from bench.harness import Bench, Figure, Target, Values
from bench.waking import waiters


def run(bench: Bench) -> None:
    """Measure P9."""
    agents, seconds = bench.size(200, 20), bench.size(30, 3)
    figure = Figure(
        "P9",
        f"{agents} agents blocked in a wait for {seconds} s",
        {"processor": "% of a core", "statements": "/s"},
        [Target("processor", "<=", 1.0), Target("statements", "<=", 1.0)],
        repetitions=2,
        ordinary=1,
        note="Of the worker process. Not counted: the echo of its listening connection, one NOTIFY every 10 s. "
        "One repetition, in a full run two, because each takes half a minute.",
    )
    with ExitStack() as stack:
        crowd = waiters(stack, bench, agents)
        time.sleep(2)

        def repeat() -> Values:
            before, began = crowd.worker.usage(), time.monotonic()
            time.sleep(seconds)
            after, took = crowd.worker.usage(), time.monotonic() - began
            return {
                "processor": (after["cpu"] - before["cpu"]) / took * 100,
                "statements": (after["statements"] - before["statements"]) / took,
            }

        bench.measure(repeat, figure)
