"""P28 through the engine: what snapshots add to a step that writes three files."""

from __future__ import annotations

import itertools
import os
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agentmesh.config.schema import Workspace
from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import PermissionMode
from agentmesh.engine.engine import Engine
from agentmesh.engine.feed import Feed
from agentmesh.engine.worker import Worker
from agentmesh.store import mailbox, sessions, workers
from agentmesh.store.listener import Listener
from agentmesh.tools import toolset
from agentmesh.tools.gate import ToolGate
from agentmesh.workspace.workspaces import Workspaces
from bench.harness import Bench, Figure, Target, Values
from bench.place import HOST, USER, Mesh
from bench.puppet import Puppet, instruction

_CALLS: Final = 3
_WITH, _WITHOUT = "a step in the repository", "a step without one"


def run(bench: Bench, repository: Path, folder: Path) -> None:
    """Measure a step in a repository against one in an empty folder; ``folder`` holds the latter, and git's objects."""
    figure = Figure(
        "P28 step",
        f"a turn whose first step has {_CALLS} calls of write, in a repository of 1,000 files and outside of one",
        {_WITH: "ms", _WITHOUT: "ms", "snapshots add": "ms"},
        [Target("snapshots add", "<=", 10)],
        note="From the send until the turn has ended. The two take turns; the difference is that of the medians."
        f" {_CALLS} calls make {_CALLS} snapshots.",
    )
    plain = folder / "plain"
    plain.mkdir(parents=True)
    with bench.place.mesh() as mesh:
        roots = {_WITH: _session(mesh, repository), _WITHOUT: _session(mesh, plain)}
        worker = _worker(mesh, folder)
        numbers = itertools.count()
        try:
            bench.measure(lambda: _repeat(mesh, roots, numbers, bench.size(15, 3, 40)), figure)
        finally:
            worker.stop()


def _session(mesh: Mesh, workdir: Path) -> AgentId:
    root = mesh.new_session(workdir=workdir)
    mesh.database.run(sessions.set_mode, mesh.session_of(root), PermissionMode.EDITS)
    return root


def _worker(mesh: Mesh, folder: Path) -> Worker:
    """Start a worker in this process, with workspaces."""
    engine = Engine(
        mesh.database,
        Puppet(),
        toolset.builtin(mesh.database),
        ToolGate(),
        Feed(mesh.database),
        workspaces=Workspaces(mesh.database, folder, Workspace(), host=HOST, os_user=USER),
    )
    worker = Worker(
        engine,
        workers.Identity(HOST, USER, os.getpid(), 2, ("puppet",)),
        lambda heard, again, setup: Listener(mesh.url, on_notify=heard, on_reconnect=again, setup=setup),
    )
    worker.start()
    return worker


def _repeat(mesh: Mesh, roots: Mapping[str, AgentId], numbers: itertools.count[int], turns: int) -> Values:
    times: dict[str, list[float]] = {where: [] for where in roots}
    for _ in range(turns + 1):
        for where, root in roots.items():
            times[where].append(_turn(mesh, root, next(numbers)))
    with_, without = (statistics.median(times[where][1:]) for where in (_WITH, _WITHOUT))  # the first opens everything
    return {_WITH: with_, _WITHOUT: without, "snapshots add": with_ - without}


def _turn(mesh: Mesh, root: AgentId, number: int) -> float:
    """Let an agent write new files; return the milliseconds of its turn."""
    calls = [("write", {"path": f"new/{number}-{each}.txt", "content": f"{number}\n" * 30}) for each in range(_CALLS)]
    began = time.perf_counter()
    mesh.database.run(mailbox.send, None, root, instruction(*calls))
    mesh.until("select status = 'idle' from agentmesh.agents where id = %s", root)
    took = (time.perf_counter() - began) * 1e3
    wrong = mesh.one(
        "select content -> 'result' ->> 'error' from agentmesh.transcript where agent_id = %s and kind = 'tool_result'"
        " and content -> 'result' ->> 'error' is not null limit 1",
        root,
    )
    if wrong:
        raise RuntimeError(f"a call of write failed: {wrong}")
    return took
