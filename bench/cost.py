"""What a model call costs the engine: processor time, statements, commits and flushes; and where the time goes."""

from __future__ import annotations

import re
import signal
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from psycopg import sql

from agentmesh.store import mailbox
from bench.harness import Bench, Figure, Values
from bench.machine import tree_seconds
from bench.model_server import START, ModelServer, calls
from bench.peers.environments import NotInstalledError, environment
from bench.place import Mesh
from bench.worker import WorkerProcess

_RATE: Final = 100
"""Samples a second; more would slow the worker down."""
_SHOWN: Final = 15


def run(bench: Bench, models: ModelServer) -> None:
    """Measure the cost, and in a full run take the profiles."""
    children, runs = bench.size(20, 5), bench.size(3, 1)
    figure = Figure(
        "cost",
        f"what agentmesh spends on one model call with its tool calls (K={children} as in P23)",
        {
            "processor of the worker": "ms",
            "processor of the database": "ms",
            "statements": "",
            "commits": "",
            "commits that write": "",
            "flushes of the log": "",
        },
        repetitions=3,
        ordinary=1,
        note="All that was spent in some orchestrations (forks, waits and reports too), divided by their model calls. "
        "Commits are pg_stat_database's: reads are commits too, and so is each notification that the worker's "
        "listening connection takes. Those that write have a transaction id; several may share a flush.",
    )
    bench.measure(lambda: _cost(bench, models, children, runs), figure)
    if bench.full or bench.quick:
        _profiles(bench, models, children, bench.size(20, 1))


def _cost(bench: Bench, models: ModelServer, children: int, runs: int) -> Values:
    """Orchestrate in a fresh database; its counters are whole when the worker's connections have ended."""
    with bench.place.mesh() as mesh:
        written, flushes = _written(mesh), flushed(mesh)
        with WorkerProcess(mesh.url, concurrency=32, base_url=models.base_url) as worker:
            _orchestrate(mesh, worker, children)  # warm
            before, server = worker.usage(), tree_seconds([bench.place.server_pid])
            for _ in range(runs):
                _orchestrate(mesh, worker, children)
            after, server_after = worker.usage(), tree_seconds([bench.place.server_pid])
        mesh.until("select count(*) = 0 from pg_stat_activity where application_name like 'agentmesh/worker/%%'")
        timed, all_calls = runs * calls(children), (runs + 1) * calls(children)
        committed = mesh.one("select xact_commit from pg_stat_database where datname = current_database()")
        return {
            "processor of the worker": (after["cpu"] - before["cpu"]) / timed * 1e3,
            "processor of the database": (server_after - server) / timed * 1e3,
            "statements": (after["statements"] - before["statements"]) / timed,
            "commits": committed / all_calls,
            "commits that write": (_written(mesh) - written) / all_calls,
            "flushes of the log": (flushed(mesh) - flushes) / all_calls,
        }


def _profiles(bench: Bench, models: ModelServer, children: int, runs: int) -> None:
    """Sample the worker's threads and let the server time its functions, in a run of their own."""
    try:
        spy = environment("py_spy").with_name("py-spy")
    except NotInstalledError as error:
        bench.failed("profile", "the profile of the worker", str(error), absent=True)
        return
    with bench.place.mesh() as mesh:
        name = sql.Identifier(mesh.bare.info.dbname)
        mesh.bare.execute(sql.SQL("alter database {} set track_functions = 'all'").format(name))
        with WorkerProcess(mesh.url, concurrency=32, base_url=models.base_url) as worker:
            _orchestrate(mesh, worker, children)
            with _Sampled(spy, worker.pid, bench.place.folder / "samples") as sampled:
                for _ in range(runs):
                    _orchestrate(mesh, worker, children)
        mesh.until("select count(*) = 0 from pg_stat_activity where application_name like 'agentmesh/worker/%%'")
        timed = _functions(mesh, (runs + 1) * calls(children))
    _tell(
        bench,
        "profile, worker",
        "where the worker's Python spends its time in P23: functions by own time",
        "%",
        sampled.shares(),
        f"Sampled {_RATE} times a second with py-spy, only the thread that holds the interpreter's lock.",
    )
    _tell(
        bench,
        "profile, database",
        "where the database spends its time in P23: its functions by own time per model call",
        "ms",
        timed,
        "track_functions. Wall time of 20 agents at once on few processors, waits for locks and flushes included.",
    )


class _Sampled:
    """Samples a process while the context lasts."""

    def __init__(self, spy: Path, pid: int, out: Path) -> None:
        self._command = [str(spy), "record", "--pid", str(pid), "--rate", str(_RATE), "--gil", "--duration", "3600"]
        self._out = out

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [*self._command, "--format", "raw", "--output", str(self._out)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()  # it says so when it samples
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.send_signal(signal.SIGINT)
        self._said, _ = self._process.communicate(timeout=60)

    def shares(self) -> dict[str, float]:
        """Return the functions with the most own samples, in percent."""
        if not self._out.exists():
            raise RuntimeError(f"py-spy took no samples: {self._said.strip()}")
        own: Counter[str] = Counter()
        for line in self._out.read_text().splitlines():
            stack, _, samples = line.rpartition(" ")
            own[re.sub(r":\d+\)$", ")", stack.rpartition(";")[2])] += int(samples)
        return {function: samples / own.total() * 100 for function, samples in own.most_common(_SHOWN)}


def _orchestrate(mesh: Mesh, worker: WorkerProcess, children: int) -> None:
    root = mesh.new_session()
    mesh.database.run(mailbox.send, None, root, f"{START} {children}")
    worker.next("finished", root)


def _written(mesh: Mesh) -> int:
    """Return the next transaction id: only who writes takes one."""
    return int(mesh.one("select pg_snapshot_xmax(pg_current_snapshot())::text"))


def flushed(mesh: Mesh) -> int:
    """Return how often the server has flushed its log."""
    if mesh.bare.info.server_version >= 180000:
        return int(mesh.one("select sum(fsyncs) from pg_stat_io where object = 'wal'"))
    return int(mesh.one("select wal_sync from pg_stat_wal"))


def _functions(mesh: Mesh, model_calls: int) -> dict[str, float]:
    rows = mesh.bare.execute(
        "select funcname, self_time / %s from pg_stat_user_functions where schemaname = 'agentmesh'"
        " order by self_time desc limit %s",
        [model_calls, _SHOWN],
    )
    return {f"agentmesh.{name}": own for name, own in rows}


def _tell(bench: Bench, key: str, title: str, unit: str, found: Mapping[str, float], note: str) -> None:
    """Add a profile as a figure: what is in it is known only now."""
    bench.measure(lambda: found, Figure(key, title, dict.fromkeys(found, unit), repetitions=1, note=note))
