"""P10: what idle agents cost in memory."""

from __future__ import annotations

from bench.harness import Bench, Figure, Target, Values
from bench.machine import memory, own_memory
from bench.place import Mesh
from bench.worker import WorkerProcess

_BACKENDS = "select pid from pg_stat_activity where application_name ~ ('^agentmesh/.*/' || %s || '$')"
_RESTED = "select count(*) = 0 from agentmesh.agents where status = 'running'"


def run(bench: Bench) -> None:
    """Measure P10."""
    few, more = 100, bench.size(1000, 50)
    figure = Figure(
        "P10",
        f"memory of a worker with {few} idle agents, and of its database connections",
        {"worker": "MiB", "its connections": "MiB", "in all": "MiB", "each further agent": "KiB"},
        [Target("in all", "<=", 150), Target("each further agent", "<=", 100)],
        repetitions=1,
        note=f"Each agent has had a turn. Of a connection what is its own (private pages). Then {more} further agents.",
    )

    def repeat() -> Values:
        with bench.place.mesh() as mesh, WorkerProcess(mesh.url) as worker:
            _turns(mesh, few)
            of_worker, of_server = _used(mesh, worker)
            _turns(mesh, more)
            further = sum(_used(mesh, worker)) - of_worker - of_server
            return {
                "worker": of_worker / 2**20,
                "its connections": of_server / 2**20,
                "in all": (of_worker + of_server) / 2**20,
                "each further agent": further / more / 2**10,
            }

    bench.measure(repeat, figure)


def _turns(mesh: Mesh, count: int) -> None:
    for _ in range(count):
        mesh.fork(mesh.root, "say a word")
    mesh.until(_RESTED)


def _used(mesh: Mesh, worker: WorkerProcess) -> tuple[float, float]:
    backends = [int(pid) for (pid,) in mesh.bare.execute(_BACKENDS, [str(worker.pid)])]
    return memory(worker.pid), sum(own_memory(pid) for pid in backends)
