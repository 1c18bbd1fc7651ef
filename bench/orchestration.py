"""P23: a root and K children with tool calls against the simulator; agentmesh, the bare SDK and every framework."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

from agentmesh.domain.ids import AgentId
from agentmesh.store import mailbox
from agentmesh.tools import toolset
from agentmesh.tools.prompt import system_prompt
from bench import cost
from bench.harness import Bench, Figure, Target, Values, ratio
from bench.machine import memory, tree_seconds
from bench.model_server import NOTE, START, Counts, ModelServer, calls, work
from bench.peers.environments import NotInstalledError
from bench.peers.frameworks.rivals import SDK, Rival, rivals
from bench.peers.process import PeerError
from bench.pictures import Bars, Wanted
from bench.place import Mesh
from bench.worker import WorkerProcess

_OURS: Final = "agentmesh"
_STORED: Final = "everything stored, in fsynced commits"
_NOT_STORED: Final = "nothing stored"


def run(bench: Bench) -> None:
    """Measure P23 with K = 1 and 20 (and 200 in a full run), what a start costs, and what a model call costs."""
    (bench.place.folder / NOTE).write_text("one line\n")
    with ExitStack() as stack:
        models = stack.enter_context(ModelServer())
        with ExitStack() as contest:
            mesh = contest.enter_context(bench.place.mesh())
            worker = contest.enter_context(WorkerProcess(mesh.url, concurrency=32, base_url=models.base_url))
            told = {
                "base_url": models.base_url,
                "workdir": str(bench.place.folder),
                "system": system_prompt(bench.place.folder),
                "tools": toolset.definitions(toolset.builtin(mesh.database)),
            }
            others, absent = contest.enter_context(rivals(told))
            for name, error in absent.items():
                absent_here = isinstance(error, NotInstalledError)
                bench.failed(f"P23 {name}", "orchestration, this framework", str(error), absent=absent_here)
            full = [200] if bench.full else []
            ours = _Contest(mesh, worker, models, bench.place.server_pid, told)
            _measure(bench, ours, others, [1, bench.size(20, 5), *full])
        cost.run(bench, models)


@dataclass(frozen=True, slots=True)
class _Ours:
    """One orchestration of agentmesh."""

    seconds: float
    worker: float
    """Processor seconds, as the next."""
    server: float


class _Contest:
    """All ways to do the same work; who did less of it than the others raises."""

    def __init__(
        self, mesh: Mesh, worker: WorkerProcess, models: ModelServer, server_pid: int, told: Mapping[str, Any]
    ) -> None:
        """``told``: tools and system prompt of everybody."""
        self.imports = float(worker.usage()["cpu"])
        """Processor seconds that our worker took to begin."""
        self._told = told
        self._mesh = mesh
        self._worker = worker
        self._models = models
        self._server_pid = server_pid

    @property
    def memory(self) -> float:
        """Resident bytes of our worker."""
        return memory(self._worker.pid)

    def ours(self, children: int) -> _Ours:
        """Do it with agentmesh."""
        root = self._mesh.new_session()
        self._worker.forget()
        counts, before, server = self._models.counts(), self._used(), tree_seconds([self._server_pid])
        began = time.monotonic_ns()
        self._mesh.database.run(mailbox.send, None, root, f"{START} {children}")
        ended = int(self._worker.next("finished", root)["at"])
        after, server_after = self._used(), tree_seconds([self._server_pid])
        self._same(_OURS, children, self._models.counts().minus(counts))
        self._stored(root, children)
        return _Ours((ended - began) / 1e9, after - before, server_after - server)

    def theirs(self, rival: Rival, children: int) -> tuple[float, float]:
        """Do it with another; return seconds and processor seconds."""
        counts = self._models.counts()
        ran = rival.run(f"{START} {children}", children)
        self._same(rival.name, children, self._models.counts().minus(counts))
        return ran.seconds, ran.processor

    def _used(self) -> float:
        return float(self._worker.usage()["cpu"])

    def _same(self, who: str, children: int, did: Counts) -> None:
        demanded = work(children, len(self._told["tools"]), len(self._told["system"]))
        if did != demanded:
            raise RuntimeError(f"{who} did other work with {children} children: {did}, not {demanded}")

    def _stored(self, root: AgentId, children: int) -> None:
        stored = self._mesh.one(
            "select count(*) from agentmesh.model_calls m join agentmesh.agents a on a.id = m.agent_id"
            " where a.session_id = %s and m.error is null",
            self._mesh.session_of(root),
        )
        if stored != calls(children):
            raise RuntimeError(f"{stored} model calls were stored, not {calls(children)}")


def _measure(bench: Bench, contest: _Contest, others: Sequence[Rival], sizes: Sequence[int]) -> None:
    """Everybody in turn, some rounds in each repetition."""
    others = _warmed(bench, contest, others, sizes)
    rounds = bench.size(2, 1, 1)
    figures = [_seconds(others, k, rounds) for k in sizes]

    def repeat() -> Values:
        seen: list[dict[str, float]] = []
        for _ in range(rounds):
            seen.append({})
            for k in sizes:
                seen[-1] |= _round(contest, others, k)
        found = {name: statistics.median(one[name] for one in seen) for name in seen[0]}
        for k in sizes:
            ours, sdk = found[f"K={k}: {_OURS}"], found[f"K={k}: {SDK}"]
            fastest = min((found[f"K={k}: {other.name}"] for other in others if other.name != SDK), default=0.0)
            found[f"K={k}: {_OURS} / {SDK}"] = ratio(ours, sdk)
            found[f"K={k}: {_OURS} / fastest framework"] = ratio(ours, fastest)
        return found

    bench.measure(repeat, *figures)
    bench.measure(lambda: _resources(contest, others), _start(others, sizes[-1]))


def _round(contest: _Contest, others: Sequence[Rival], children: int) -> dict[str, float]:
    """Let everybody do it once; return seconds and processor seconds."""
    ours = contest.ours(children)
    ran = {other.name: contest.theirs(other, children) for other in others}
    return {
        f"K={children}: {_OURS}": ours.seconds,
        **{f"K={children}: {name}": seconds for name, (seconds, _) in ran.items()},
        f"K={children}: processor of {_OURS}, worker": ours.worker,
        f"K={children}: processor of {_OURS}, database": ours.server,
        **{f"K={children}: processor of {name}": processor for name, (_, processor) in ran.items()},
    }


def _warmed(bench: Bench, contest: _Contest, others: Sequence[Rival], sizes: Sequence[int]) -> list[Rival]:
    """Let everybody do it once; return those who could."""
    able = list(others)
    for k in sizes:
        contest.ours(k)
        for other in list(able):
            try:
                contest.theirs(other, k)
            except PeerError as error:
                if other.name == SDK:
                    raise
                able.remove(other)
                bench.failed(f"P23 {other.name}", f"orchestration with K={k}, this framework", str(error))
    return able


def _seconds(others: Sequence[Rival], children: int, rounds: int) -> Figure:
    frameworks = any(other.name != SDK for other in others)
    k = f"K={children}: "
    units = {
        f"{k}{_OURS}": "s",
        **{f"{k}{other.name}": "s" for other in others},
        f"{k}{_OURS} / {SDK}": "x",
        **({f"{k}{_OURS} / fastest framework": "x"} if frameworks else {}),
        f"{k}processor of {_OURS}, worker": "s",
        f"{k}processor of {_OURS}, database": "s",
        **{f"{k}processor of {other.name}": "s" for other in others},
    }
    targets = [Target(f"{k}{_OURS} / {SDK}", "<=", 1.0)]
    if frameworks:
        targets.append(Target(f"{k}{_OURS} / fastest framework", "<=", 1.0))
    releases = ", ".join(f"{other.name} {other.release}" for other in others)
    return Figure(
        "P23",
        f"orchestration, K={children}: a root forks K children, each calls a tool three times and answers in 50 events",
        units,
        targets if children > 1 else [],
        repetitions=3,
        note=f"Warm processes, in turn, {rounds} rounds in a repetition, of which the median is taken: a machine's "
        "speed swings by a third from one second to the next. The model server (the simulator, a process of its own, "
        "no delay) counts what each asks of it: the same model calls, tool calls and results, characters of answer and "
        f"of system prompt, and the same tool definitions. agentmesh: {_STORED}, and it goes on after a crash of any "
        f"process; all others: {_NOT_STORED}, a crash loses everything. Their children are asyncio tasks, the SDK's "
        f"threads. {releases}.",
        picture=Bars(
            {
                f"{k}{_OURS}": f"{_OURS}: {_STORED}",
                **{f"{k}{other.name}": f"{other.name} {other.release}: {_NOT_STORED}" for other in others},
            },
            Wanted(f"≤ 1 × {SDK}", 1.0, f"{k}{SDK}"),
        ),
    )


def _start(others: Sequence[Rival], children: int) -> Figure:
    return Figure(
        "P23 start",
        f"what it takes to begin, and to have done it with K={children}",
        {
            f"imports of {_OURS}'s worker": "s",
            **{f"imports of {other.name}": "s" for other in others},
            f"memory of {_OURS}'s worker": "MiB",
            **{f"memory of {other.name}": "MiB" for other in others},
        },
        repetitions=1,
        note="Processor time from the process's start until it could begin; resident memory after the last "
        "orchestration. agentmesh's database is another process.",
    )


def _resources(contest: _Contest, others: Sequence[Rival]) -> Values:
    return {
        f"imports of {_OURS}'s worker": contest.imports,
        **{f"imports of {other.name}": other.prepared for other in others},
        f"memory of {_OURS}'s worker": contest.memory / 2**20,
        **{f"memory of {other.name}": other.memory / 2**20 for other in others},
    }
