"""Loading what an agent is sent: ten forks deep with 10,000 inherited messages, against 10,000 of its own."""

from __future__ import annotations

import statistics
import time
import tracemalloc
from typing import Final

from agentmesh.domain.ids import AgentId
from agentmesh.engine.conversation import Conversation
from agentmesh.store import agents, transcript
from bench.harness import Bench, Figure, Target, Values, ratio
from bench.pictures import Curve
from bench.place import Mesh

_DEPTH: Final = 10
_ROWS: Final = (
    "insert into agentmesh.transcript (agent_id, seq, kind, content) select %s, n,"
    " case when n %% 2 = 1 then 'user' else 'assistant' end,"
    " jsonb_build_object('text', repeat('x', 500), 'mail_id', n) from generate_series(1, %s) n"
)


def run(bench: Bench) -> None:
    """Measure loading, by the number of messages."""
    sizes = [100, 1_000, bench.size(10_000, 1_000)] if not bench.quick else [100, 1_000]
    most = max(sizes)
    with bench.place.mesh(max_depth=_DEPTH) as mesh:
        flat = {size: _flat(mesh, size) for size in sizes}
        deep = {size: _deep(mesh, size) for size in sizes}
        mesh.settle_storage()
        figure = Figure(
            "context",
            f"loading a conversation of {most:,} messages: {_DEPTH} forks deep against one agent's own",
            {
                **{f"{kind}, {size:,}": "ms" for kind in ("deep", "flat") for size in sizes},
                f"deep / flat, {most:,}": "x",
                f"deep, {most:,}: memory": "MiB",
                f"flat, {most:,}: memory": "MiB",
                f"deep, {most:,}: in the server": "ms",
            },
            [Target(f"deep / flat, {most:,}", "<=", 1.25)],
            repetitions=3,
            ordinary=2,
            note="The rows read and the conversation made of them, as for an agent that goes on after a crash or a "
            "long wait; messages of 500 characters. Best of three, in turn. Memory: what the conversation holds, as "
            "Python counts it.",
            picture=Curve(
                "messages",
                {
                    f"{_DEPTH} forks deep": {size: f"deep, {size:,}" for size in sizes},
                    "its own": {size: f"flat, {size:,}" for size in sizes},
                },
            ),
        )

        def repeat() -> Values:
            values: dict[str, float] = {}
            for size in sizes:
                took: dict[str, list[float]] = {"deep": [], "flat": []}
                for _ in range(3):
                    for kind, agent in (("deep", deep[size]), ("flat", flat[size])):
                        began = time.perf_counter()
                        if len(_load(mesh, agent).messages) != size + 1:
                            raise RuntimeError(f"not all {size} messages were loaded")
                        took[kind].append((time.perf_counter() - began) * 1e3)
                values |= {f"{kind}, {size:,}": min(times) for kind, times in took.items()}
            values[f"deep / flat, {most:,}"] = ratio(values[f"deep, {most:,}"], values[f"flat, {most:,}"])
            values[f"deep, {most:,}: memory"] = _memory(mesh, deep[most])
            values[f"flat, {most:,}: memory"] = _memory(mesh, flat[most])
            values[f"deep, {most:,}: in the server"] = statistics.median(_explained(mesh, deep[most]) for _ in range(3))
            return values

        bench.measure(repeat, figure)


def _flat(mesh: Mesh, size: int) -> AgentId:
    agent = mesh.fork(mesh.root)
    mesh.bare.execute(_ROWS, [agent, size])
    return agent


def _deep(mesh: Mesh, size: int) -> AgentId:
    """Return a leaf with nothing of its own, below ancestors that said a tenth each and were forked after that."""
    agent = mesh.new_session()
    for _ in range(_DEPTH):
        mesh.bare.execute(_ROWS, [agent, size // _DEPTH])
        agent = mesh.fork(agent)
    return agent


def _load(mesh: Mesh, agent: AgentId) -> Conversation:
    row = mesh.database.run(agents.get, agent)
    settings = mesh.database.run(agents.settings, row.settings_id)
    return Conversation(agent, settings, mesh.database.run(transcript.context, agent))


def _memory(mesh: Mesh, agent: AgentId) -> float:
    tracemalloc.start()
    try:
        kept = _load(mesh, agent)
        held, _ = tracemalloc.get_traced_memory()
        del kept
    finally:
        tracemalloc.stop()
    return held / 2**20


def _explained(mesh: Mesh, agent: AgentId) -> float:
    """Return the milliseconds that the statement takes where its rows need not be sent."""
    (plan,) = mesh.one("explain (analyze, format json) select * from agentmesh.context(%s)", agent)
    return float(plan["Execution Time"])
