"""P13, P14, P17: typing while agents stream, an answer that comes fast, and what it costs the database."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg

from agentmesh.domain.ids import AgentId
from agentmesh.store import mailbox
from agentmesh.store.status import session_channel
from bench.harness import Bench, Figure, Target, Values, percentile
from bench.place import Mesh
from bench.screen import CHILD, Screen, tui
from bench.streams import LAST, Streams, told
from bench.worker import WorkerProcess

_PAUSE: Final = 0.05
"""Seconds between two keys: a fast typist."""
_FEW, _MANY = (8, 50), (50, 20)
"""Agents, and tokens a second of each."""
_BEGUN: Final = "status = 'running' and started_turn = turn"
_RESTED: Final = "select not exists (select from agentmesh.agents where status = 'running')"


def run(bench: Bench) -> None:
    """Measure P13, P14 and P17."""
    keys = bench.size(50, 10, 60)
    _typing(bench, keys, *_FEW, [Target("p99", "<=", 100)], "P14")
    _typing(bench, keys, *((8, 20) if bench.quick else _MANY), [], "typing")
    _fast(bench)


def _typing(bench: Bench, keys: int, agents: int, rate: int, targets: list[Target], key: str) -> None:
    typing = Figure(
        key,
        f"key to screen while {agents} agents stream {rate} tokens/s each",
        {"p50": "ms", "p95": "ms", "p99": "ms", "idle p50": "ms"},
        targets,
        repetitions=3,
        ordinary=2 if targets else 1,
        note=f"{keys} letters, {_PAUSE:g} s apart, while one of the agents is in view; idle: before they begin. "
        "Worker, model server and database share the processors.",
    )
    notifies = Figure(
        "P17" if key == "P14" else "notifies",
        f"NOTIFYs for screens while {agents} agents stream {rate} tokens/s each",
        {"NOTIFYs": "/s"},
        [Target("NOTIFYs", "<=", 11)] if key == "P14" else [],
        repetitions=3,
        note="Of one worker process, on the session's channel, during the typing. The target is 10 a second and "
        "process, and allows for one more at an edge.",
    )
    with _stage(bench, agents) as (mesh, children, screen):
        screen.send(CHILD)
        screen.drain(0.5)

        def repeat() -> Values:
            idle = screen.echoes(keys // 3, _PAUSE)
            heard = _Heard(mesh)
            tokens = int(rate * (2 * keys * _PAUSE + 6))
            for child in children:
                mesh.database.run(mailbox.send, None, child, told(tokens, rate))
            _until(mesh, screen, f"select count(*) = {agents} from agentmesh.agents where {_BEGUN}")
            screen.drain(1.0)
            heard.start()
            took = screen.echoes(keys, _PAUSE)
            per_second = heard.stop()
            _until(mesh, screen, _RESTED)
            return {
                "p50": statistics.median(took) * 1e3,
                "p95": percentile(took, 0.95) * 1e3,
                "p99": percentile(took, 0.99) * 1e3,
                "idle p50": statistics.median(idle) * 1e3,
                "NOTIFYs": per_second,
            }

        bench.measure(repeat, typing, notifies)


def _fast(bench: Bench) -> None:
    tokens, rate = bench.size(3000, 300), 200
    figure = Figure(
        "P13",
        f"{rate} tokens/s into one answer in view, {tokens:,} tokens",
        {"behind": "ms", "key p50": "ms", "key p99": "ms"},
        [Target("behind", "<=", 1000), Target("key p99", "<=", 60)],
        repetitions=3,
        ordinary=1,
        note="Behind: from the commit of the whole answer until its last word was on the screen. The target on the "
        "event loop's lag is asked of keys typed meanwhile, which wait for the loop and are drawn too.",
    )
    with _stage(bench, 0) as (mesh, _, screen):

        def repeat() -> Values:
            since = screen.place
            mesh.database.run(mailbox.send, None, mesh.root, told(tokens, rate))
            took: list[float] = []
            began = time.monotonic()
            while time.monotonic() - began < tokens / rate * 0.8:
                took += screen.echoes(20, _PAUSE)
                screen.drain(0.2)
            committed = _until(mesh, screen, _RESTED)
            shown = screen.until(LAST.encode(), since)
            return {
                "behind": max(shown - committed, 0.0) * 1e3,
                "key p50": statistics.median(took) * 1e3,
                "key p99": percentile(took, 0.99) * 1e3,
            }

        bench.measure(repeat, figure)


def _until(mesh: Mesh, screen: Screen, query: str) -> float:
    """Read the screen until the query says true; return when it did."""
    while not mesh.one(query):
        screen.drain(0.005)
    return time.monotonic()


@contextmanager
def _stage(bench: Bench, agents: int) -> Iterator[tuple[Mesh, list[AgentId], Screen]]:
    """Lend a session with idle children, a worker for it, and the TUI on it."""
    with (
        bench.place.mesh() as mesh,
        Streams() as streams,
        WorkerProcess(mesh.url, concurrency=max(agents, 1), base_url=streams.base_url),
    ):
        children = [mesh.fork(mesh.root) for _ in range(agents)]
        mesh.settle_storage()
        with tui(mesh.url, mesh.session, bench.place.folder) as screen:
            screen.until(b"cost $")
            yield mesh, children, screen


class _Heard:
    """Counts what is said on the session's channel; on a thread, for what nobody reads soon is not sent either."""

    def __init__(self, mesh: Mesh) -> None:
        self._conn = psycopg.connect(mesh.url, autocommit=True)
        self._conn.execute(psycopg.sql.SQL("listen {}").format(psycopg.sql.Identifier(session_channel(mesh.session))))
        self._stopping = threading.Event()
        self._count = 0
        self._thread = threading.Thread(target=self._read, name="heard", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._stopping.is_set():
            for _ in self._conn.notifies(timeout=0.1):
                self._count += 1

    def start(self) -> None:
        """Begin to count."""
        self._began, self._before = time.monotonic(), self._count

    def stop(self) -> float:
        """Return how many came a second."""
        per_second = (self._count - self._before) / (time.monotonic() - self._began)
        self._stopping.set()
        self._thread.join()
        self._conn.close()
        return per_second
