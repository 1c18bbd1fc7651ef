"""P25: what a wall adds to one call of bash, against the same call without."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Final

from agentmesh.config.schema import Sandbox
from agentmesh.domain.cancel import Cancel
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.engine.tool import ToolContext
from agentmesh.tools.bash import Bash, BashArgs
from agentmesh.tools.guarded_run import Spawner
from agentmesh.tools.wall.walls import Walls
from bench.harness import Bench, Figure, Target, Values

_LIMITS: Final = {"bubblewrap": 15.0, "landlock": 5.0}
"""Milliseconds that each kind of wall may add, at the median."""


def run(bench: Bench) -> None:
    """Measure P25 with each kind of wall that this machine can build."""
    spawner = Spawner()
    with tempfile.TemporaryDirectory() as folder:
        plain = _call(spawner, Walls(Sandbox(bash="off")), Path(folder), approved=True)
        for kind, limit in _LIMITS.items():
            walls = Walls(Sandbox(wall=kind))  # type: ignore[arg-type]
            figure = Figure(
                f"P25 {kind}",
                f"what {kind} adds to one call of bash that runs `true`",
                {"reading": "ms", "approved": "ms", "a call without": "ms"},
                [Target("reading", "<=", limit), Target("approved", "<=", limit)],
                note="Reading: nobody approved the command. The calls take turns; shown are differences of medians.",
                any_load=True,
            )
            if problem := walls.problem():
                bench.failed(figure.key, figure.title, problem)
                continue
            calls = {
                "a call without": plain,
                "reading": _call(spawner, walls, Path(folder), approved=False),
                "approved": _call(spawner, walls, Path(folder), approved=True),
            }
            bench.measure(lambda calls=calls: _added(calls, bench.size(25, 10, 60)), figure)  # type: ignore[misc]
            walls.close()
    spawner.close()


def _call(spawner: Spawner, walls: Walls, workdir: Path, *, approved: bool) -> Callable[[], None]:
    tool, args = Bash(spawner, walls), BashArgs(command="true")
    agent, session = AgentId(uuid.uuid4()), SessionId(uuid.uuid4())
    context = ToolContext(agent, session, Path(os.path.realpath(workdir)), Cancel(), approved=approved)

    def call() -> None:
        if tool.run(args, context) != {"exit_code": 0, "output": ""}:
            raise RuntimeError("`true` failed behind the wall")

    return call


def _added(calls: dict[str, Callable[[], None]], rounds: int) -> Values:
    """Return the median of the calls without a wall, and what each of the others takes more, in milliseconds."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            times[name].append((time.perf_counter() - began) * 1e3)
    medians = {name: statistics.median(each) for name, each in times.items()}
    without = medians["a call without"]
    return {name: median if name == "a call without" else median - without for name, median in medians.items()}
