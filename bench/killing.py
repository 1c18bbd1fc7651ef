"""P21: killing a tree of 200 agents, and telling those who wait for one of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from agentmesh.domain.ids import AgentId
from agentmesh.store import agents, mailbox
from bench.harness import Bench, Figure, Target, Values
from bench.place import Mesh
from bench.puppet import instruction
from bench.worker import WorkerProcess

_WAITERS: Final = 10


def run(bench: Bench) -> None:
    """Measure P21."""
    size = bench.size(200, 20)
    figure = Figure(
        "P21",
        f"kill of a tree of {size} agents, for each of which one of {_WAITERS} others waits",
        {"kill": "ms", "last waiter told after the kill": "ms"},
        [Target("kill", "<=", 50.0), Target("last waiter told after the kill", "<=", 50.0)],
        note=f"Each waiter waits for {size // _WAITERS} of the tree. Told: its tool result is committed. The waiters "
        "answer at once, so the worker runs the first of them while it still tells the others.",
    )
    with bench.place.mesh() as mesh, WorkerProcess(mesh.url) as worker:
        waiting = [mesh.fork(mesh.root) for _ in range(_WAITERS)]

        def repeat() -> Values:
            top = mesh.forever_running(mesh.root, 1)[0]
            tree = [top, *mesh.forever_running(top, size - 1)]
            for n, waiter in enumerate(waiting):
                awaited = [str(agent) for agent in tree[n::_WAITERS]]
                told = instruction(("wait", {"timeout": 600, "from_agents": awaited}))
                mesh.database.run(mailbox.send, None, waiter, told)
            mesh.until("select count(*) = %s from agentmesh.wait", _WAITERS)
            time.sleep(0.2)
            kill, told_after = timed_kill(mesh, worker, top, size, waiting)
            return {"kill": kill, "last waiter told after the kill": told_after}

        bench.measure(repeat, figure)


def timed_kill(
    mesh: Mesh, worker: WorkerProcess, top: AgentId, size: int, waiting: Sequence[AgentId]
) -> tuple[float, float]:
    """Kill a tree of a size that these wait for; return the milliseconds of the kill, and until the last was told."""
    worker.forget()
    began = time.monotonic_ns()
    killed = mesh.database.run(agents.kill, top)
    done = time.monotonic_ns()
    if len(killed) != size:
        raise RuntimeError(f"{len(killed)} agents were killed, not {size}")
    last = max(worker.next("taken")["at"] for _ in waiting)
    mesh.until("select bool_and(status = 'idle') from agentmesh.agents where id = any (%s)", waiting)
    return (done - began) / 1e6, (last - done) / 1e6
