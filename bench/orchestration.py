"""P23, first part: a root and K children with tool calls against the simulator, everything stored."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack

from agentmesh.store import mailbox
from agentmesh.tools import toolset
from agentmesh.tools.prompt import system_prompt
from bench.bare_sdk import BareSDK
from bench.harness import Bench, Figure, Target, Values, ratio
from bench.machine import tree_seconds
from bench.model_server import CHILD_CALLS, NOTE, ROOT_CALLS, START, ModelServer
from bench.place import Mesh
from bench.worker import WorkerProcess


def run(bench: Bench) -> None:
    """Measure P23 with K = 1 and 20, and what a model call costs."""
    (bench.place.folder / NOTE).write_text("one line\n")
    with ExitStack() as stack:
        models = stack.enter_context(ModelServer())
        mesh = stack.enter_context(bench.place.mesh())
        worker = stack.enter_context(WorkerProcess(mesh.url, concurrency=32, base_url=models.base_url))
        system, tools = system_prompt(bench.place.folder), toolset.definitions(toolset.builtin(mesh.database))
        sdk = stack.enter_context(BareSDK(models.base_url, bench.place.folder, system, tools))
        _measure(bench, _Contest(mesh, worker, sdk, bench.place.server_pid), (1, bench.size(20, 5)))


class _Contest:
    """Both ways to do the same work."""

    def __init__(self, mesh: Mesh, worker: WorkerProcess, sdk: BareSDK, server_pid: int) -> None:
        self._mesh = mesh
        self._worker = worker
        self._sdk = sdk
        self._server_pid = server_pid

    def bare(self, children: int) -> tuple[float, float]:
        """Return seconds and processor seconds of the bare SDK."""
        return self._sdk.run(children)

    def ours(self, children: int) -> dict[str, float]:
        """Return seconds, processor seconds of worker and database, and statements of agentmesh."""
        root = self._mesh.new_session()
        self._worker.forget()
        before, server = self._worker.usage(), tree_seconds([self._server_pid])
        began = time.monotonic_ns()
        self._mesh.database.run(mailbox.send, None, root, f"{START} {children}")
        ended = int(self._worker.next("finished", root)["at"])
        after, server_after = self._worker.usage(), tree_seconds([self._server_pid])
        stored = self._mesh.one(
            "select count(*) from agentmesh.model_calls m join agentmesh.agents a on a.id = m.agent_id"
            " where a.session_id = %s and m.error is null",
            self._mesh.session_of(root),
        )
        if stored != _calls(children):
            raise RuntimeError(f"{stored} model calls were stored, not {_calls(children)}")
        return {
            "seconds": (ended - began) / 1e9,
            "worker": after["cpu"] - before["cpu"],
            "server": server_after - server,
            "statements": after["statements"] - before["statements"],
        }


def _measure(bench: Bench, contest: _Contest, sizes: Sequence[int]) -> None:
    most = sizes[-1]
    units = {
        f"K={k}: {what}": unit
        for k in sizes
        for what, unit in (
            ("agentmesh", "s"),
            ("bare openai SDK", "s"),
            ("agentmesh / SDK", "x"),
            ("processor of the worker", "s"),
            ("processor of the SDK's process", "s"),
        )
    }
    figure = Figure(
        "P23",
        "orchestration: a root forks K children, each calls a tool three times and answers in 50 events",
        units,
        [Target(f"K={most}: agentmesh / SDK", "<=", 1.0)],
        note="Warm; the model server (the simulator, a process of its own, no delay) is the same for both, and so are "
        "the requests' sizes. agentmesh stores everything, the SDK's threads nothing. Other frameworks come later.",
    )
    cost = Figure(
        "cost",
        f"what agentmesh spends on one model call with its tool calls (K={most})",
        {"processor of the worker": "ms", "processor of the database": "ms", "statements": ""},
        note="In the repetitions of P23: all that was spent, divided by the number of model calls.",
    )
    for k in sizes:  # warm both
        contest.ours(k)
        contest.bare(k)

    def repeat() -> Values:
        found: dict[str, float] = {}
        for k in sizes:
            ours = contest.ours(k)
            seconds, processor = contest.bare(k)
            found |= {
                f"K={k}: agentmesh": ours["seconds"],
                f"K={k}: bare openai SDK": seconds,
                f"K={k}: agentmesh / SDK": ratio(ours["seconds"], seconds),
                f"K={k}: processor of the worker": ours["worker"],
                f"K={k}: processor of the SDK's process": processor,
            }
        return {
            **found,
            "processor of the worker": ours["worker"] / _calls(most) * 1e3,
            "processor of the database": ours["server"] / _calls(most) * 1e3,
            "statements": ours["statements"] / _calls(most),
        }

    bench.measure(repeat, figure, cost)


def _calls(children: int) -> int:
    return ROOT_CALLS + CHILD_CALLS * children
