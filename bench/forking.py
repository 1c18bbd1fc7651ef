"""P20: a fork refers to its parent's history, so its length must not matter."""

from __future__ import annotations

import statistics
import time
from typing import Final

from agentmesh.domain.ids import AgentId
from bench.harness import Bench, Figure, Target, Values, ratio

_HISTORY: Final = 10_000


def run(bench: Bench) -> None:
    """Measure P20."""
    figure = Figure(
        "P20",
        f"fork with a prompt from a parent of {_HISTORY:,} messages against one from an empty parent",
        {"long parent p50": "ms", "empty parent p50": "ms", "long / empty": "x"},
        [Target("long / empty", "<=", 1.2)],
        note="In turn, both parents with the same number of children, each in a session of its own.",
    )
    forks = bench.size(100, 10)
    with bench.place.mesh() as mesh:
        empty, long = mesh.root, mesh.new_session()
        mesh.bare.execute(
            "insert into agentmesh.transcript (agent_id, seq, kind, content) select %s, n,"
            " case when n %% 2 = 1 then 'user' else 'assistant' end,"
            " jsonb_build_object('text', repeat('x', 500), 'mail_id', n) from generate_series(1, %s) n",
            [long, _HISTORY],
        )
        mesh.settle_storage()

        def fork(parent: AgentId) -> float:
            began = time.perf_counter()
            mesh.fork(parent, "work")
            return (time.perf_counter() - began) * 1e3

        def repeat() -> Values:
            times: dict[AgentId, list[float]] = {long: [], empty: []}
            for n in range(forks):
                for parent in (long, empty) if n % 2 else (empty, long):
                    times[parent].append(fork(parent))
            from_long, from_empty = (statistics.median(times[parent]) for parent in (long, empty))
            return {
                "long parent p50": from_long,
                "empty parent p50": from_empty,
                "long / empty": ratio(from_long, from_empty),
            }

        bench.measure(repeat, figure)
