"""P7, P8: an agent waits for K others; how soon it has all their messages, and with how many queries."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

from agentmesh.domain.ids import AgentId
from agentmesh.store import mailbox
from bench.harness import Bench, Figure, Target, Values, ratio
from bench.place import Mesh
from bench.puppet import instruction
from bench.worker import WorkerProcess


def run(bench: Bench) -> None:
    """Measure P7 and P8."""
    few, many = 100, bench.size(1000, 200)
    with bench.place.mesh() as mesh, WorkerProcess(mesh.url) as worker:
        senders = mesh.forever_running(mesh.root, many)
        mesh.settle_storage()
        _measure(bench, mesh, worker, senders[:few], senders)


def _measure(bench: Bench, mesh: Mesh, worker: WorkerProcess, few: Sequence[AgentId], many: Sequence[AgentId]) -> None:
    single, ordinary, growth = "K=1", f"K={len(few)}", f"K={len(many)}"
    growth_limit = 2.0 * len(many) / len(few)
    latency = Figure(
        "P7",
        "fan-in of K: the wait's result is committed so long after the last message's commit",
        {
            f"{single} p50": "ms",
            f"{ordinary} p50": "ms",
            f"{ordinary} / {single}": "x",
            f"{ordinary} worst": "ms",
            growth: "ms",
            f"{growth} / {ordinary}": "x",
            f"{ordinary} in all": "ms",
            f"{growth} in all": "ms",
        },
        [
            Target(f"{ordinary} / {single}", "<=", 2.5),
            Target(f"{ordinary} worst", "<=", 20.0),
            Target(f"{growth} / {ordinary}", "<=", growth_limit),
        ],
        note="One process sends K messages, one after another, each from another agent. "
        f"{ordinary} ten times in a repetition, {single} five times, {growth} once. Linear growth is demanded, "
        "with a factor of 2 of room. In all: from its first send.",
    )
    queries = Figure(
        "P8",
        "fan-in of K: statements of the worker process",
        {
            f"{ordinary} while waiting": "",
            f"{growth} while waiting": "",
            f"{ordinary} to begin": "",
            f"{growth} to begin": "",
        },
        [Target(f"{ordinary} while waiting", "<=", 25)],
        note="Counted where psycopg waits for an answer, in the repetitions of P7. To begin: from the prompt until the "
        "wait stands (one model call, the names resolved, the wait registered).",
    )
    rounds = bench.size(10, 2)

    def repeat() -> Values:
        one = [_round(mesh, worker, few[:1]) for _ in range(max(rounds // 2, 1))]
        small = [_round(mesh, worker, few) for _ in range(rounds)]
        large = _round(mesh, worker, many)
        median = statistics.median(each["latency"] for each in small)
        alone = statistics.median(each["latency"] for each in one)
        return {
            f"{single} p50": alone,
            f"{ordinary} p50": median,
            f"{ordinary} / {single}": ratio(median, alone),
            f"{ordinary} worst": max(each["latency"] for each in small),
            growth: large["latency"],
            f"{growth} / {ordinary}": ratio(large["latency"], median),
            f"{ordinary} in all": statistics.median(each["all"] for each in small),
            f"{growth} in all": large["all"],
            f"{ordinary} while waiting": statistics.median(each["waiting"] for each in small),
            f"{growth} while waiting": large["waiting"],
            f"{ordinary} to begin": statistics.median(each["begin"] for each in small),
            f"{growth} to begin": large["begin"],
        }

    bench.measure(repeat, latency, queries)


def _round(mesh: Mesh, worker: WorkerProcess, senders: Sequence[AgentId]) -> dict[str, float]:
    """Let the root wait for the senders, let them send; return milliseconds and counts."""
    names = [str(sender) for sender in senders]
    before = worker.usage()["statements"]
    told = instruction(("wait", {"timeout": 600, "from_agents": names}))
    mesh.database.run(mailbox.send, None, mesh.root, told)
    begun = worker.next("waiting", mesh.root)["statements"]
    time.sleep(0.05)
    first = time.monotonic_ns()
    for sender in senders:
        mesh.database.run(mailbox.send, sender, mesh.root, "x" * 100)
    last = time.monotonic_ns()
    taken = worker.next("taken", mesh.root)
    if taken["outcome"] != "complete":
        raise RuntimeError(f"the wait ended with {taken}")
    worker.next("finished", mesh.root)
    return {
        "latency": (taken["at"] - last) / 1e6,
        "all": (taken["at"] - first) / 1e6,
        "waiting": taken["statements"] - begun,
        "begin": begun - before,
    }
