"""P15: one message to an agent inside a wait while other agents of the same worker process stream."""

from __future__ import annotations

import statistics
from typing import Final

from agentmesh.store import mailbox
from bench.harness import Bench, Figure, Target, Values, percentile
from bench.streams import Streams, told
from bench.waking import WAIT_FOR_ANYONE, Waiters
from bench.worker import WorkerProcess

_STREAMING: Final = 8
_RATE: Final = 50
"""Tokens a second of each."""
_BEGUN: Final = (
    "select count(*) = %s from agentmesh.agents where id = any (%s) and status = 'running' and started_turn = turn"
)
_RESTED: Final = "select count(*) = 0 from agentmesh.agents where id = any (%s) and status = 'running'"


def run(bench: Bench) -> None:
    """Measure P15."""
    messages = bench.size(120, 10)
    figure = Figure(
        "P15",
        f"wake-up of a waiting agent while {_STREAMING} others of its worker stream {_RATE} tokens/s each",
        {"p50": "ms", "p99": "ms", "idle p50": "ms", "idle p99": "ms"},
        [Target("p99", "<=", 30.0)],
        repetitions=3,
        ordinary=1,
        note=f"{messages} messages each, as in P1; idle: before they begin. The interpreter is shared: a thread that "
        "reads a stream keeps the one that wakes from running.",
    )
    with (
        bench.place.mesh() as mesh,
        Streams() as streams,
        WorkerProcess(mesh.url, concurrency=2 * _STREAMING, base_url=streams.base_url) as worker,
    ):
        streaming = [mesh.fork(mesh.root) for _ in range(_STREAMING)]
        crowd = Waiters(mesh, worker, [mesh.fork(mesh.root, WAIT_FOR_ANYONE)])
        mesh.settle_storage()

        def repeat() -> Values:
            idle = [crowd.message() * 1e3 for _ in range(messages)]
            seconds = messages * 0.05 + 3
            for agent in streaming:
                mesh.database.run(mailbox.send, None, agent, told(int(_RATE * seconds), _RATE))
            mesh.until(_BEGUN, _STREAMING, streaming)
            loaded = [crowd.message() * 1e3 for _ in range(messages)]
            if mesh.one(_RESTED, streaming):
                raise RuntimeError("the streams ended before the messages")
            mesh.until(_RESTED, streaming)
            return {
                "p50": statistics.median(loaded),
                "p99": percentile(loaded, 0.99),
                "idle p50": statistics.median(idle),
                "idle p99": percentile(idle, 0.99),
            }

        bench.measure(repeat, figure)
