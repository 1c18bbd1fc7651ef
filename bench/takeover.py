"""Takeover: a worker dies by kill -9 in the middle of model calls; when another one's first row is there."""

from __future__ import annotations

import time
from typing import Final

from agentmesh.store import mailbox
from bench.harness import Bench, Figure, Target, Values
from bench.worker import WorkerProcess

_AGENTS: Final = 10


def run(bench: Bench) -> None:
    """Measure the takeover."""
    figure = Figure(
        "takeover",
        f"kill -9 of a worker with {_AGENTS} agents inside model calls, until another worker has written for them",
        {"first row of a new epoch": "s", "every agent has one": "s"},
        [Target("first row of a new epoch", "<=", 5.0)],
        ordinary=2,
        note="The other worker runs all the time. It looks at the dead one's lock once a second and believes the "
        "second look.",
    )
    with bench.place.mesh() as mesh:
        agents = [mesh.fork(mesh.root) for _ in range(_AGENTS)]

        def repeat() -> Values:
            with WorkerProcess(mesh.url, mute=True) as victim:
                for agent in agents:
                    mesh.database.run(mailbox.send, None, agent, "work")
                mesh.until(
                    "select bool_and(status = 'running' and started_turn = turn) from agentmesh.agents"
                    " where id = any (%s)",
                    agents,
                )
                with WorkerProcess(mesh.url) as heir:
                    time.sleep(1.2)  # it has ticked at least once
                    killed = victim.kill()
                    rows = [heir.next("finished")["at"] / 1e9 for _ in agents]
                    return {"first row of a new epoch": rows[0] - killed, "every agent has one": max(rows) - killed}

        bench.measure(repeat, figure)
