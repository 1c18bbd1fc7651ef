"""Many agents at once for some minutes, they and their workers killed at random: what does it hold, what is left?

    python -m tests.faults.load --minutes 10 --agents 200

Everything is real but the model's wits: worker processes, HTTP, a PostgreSQL of its own with its autovacuum. Prints a
line every ten seconds and figures at the end; exit code 1 when an invariant is broken or agents do not come to rest.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import psycopg
from psycopg.rows import dict_row

from agentmesh.llm.simulator.reply import ScriptedReply
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.llm.simulator.server import Simulator
from agentmesh.store.errors import translated
from tests.faults.cluster import Cluster, connector, own_folder
from tests.fixtures.engine import Rig, call, do, say, who
from tests.fixtures.invariants import violations

EVERY = 10.0
"""Seconds between two lines."""
_SETTLE = 180.0
"""Seconds in which all agents come to rest at the end."""

_TABLES = """
select relname as name, n_live_tup as live, n_dead_tup as dead, pg_total_relation_size(relid) as bytes,
  autovacuum_count as vacuums
from pg_stat_user_tables where schemaname = 'agentmesh' and (n_tup_upd > 0 or n_tup_del > 0 or n_tup_ins > 1000)
"""


@dataclass(slots=True)
class Peaks:
    """The most that was seen of each figure, and of each table."""

    figures: dict[str, float] = field(default_factory=dict)
    dead: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)

    def note(self, figures: dict[str, float], tables: list[dict[str, Any]]) -> None:
        """Take a look into account."""
        for name, value in figures.items():
            self.figures[name] = max(value, self.figures.get(name, 0))
        for table in tables:
            for seen, what in ((self.dead, "dead"), (self.bytes, "bytes")):
                seen[table["name"]] = max(table[what], seen.get(table["name"], 0))


@dataclass(slots=True)
class Report:
    """How a run ended."""

    broken: list[str]
    busy: list[str]
    """Agents that did not come to rest."""
    calls: int
    killed: Counter[str]
    peaks: Peaks
    tables: list[dict[str, Any]]
    """At the end."""


class Load:
    """One run: a session whose agents work, and workers that come and go."""

    def __init__(self, rig: Rig, agents: int, workers: int, seed: str) -> None:
        self.rig = rig
        self.agents = agents
        self._chosen = random.Random(seed)
        self._count = itertools.count()
        self._slots = -(-agents // workers)
        self.killed: Counter[str] = Counter()
        rig.root = rig.session(max_children=agents, max_agents=agents + 1, max_tokens=None)
        self.workers = [rig.process(concurrency=self._slots) for _ in range(workers)]
        for _ in range(agents):
            self._fork()

    def _fork(self) -> None:
        self.rig.fork(f"a{next(self._count)}", "work")

    def prompt_the_idle(self) -> None:
        """Give everybody who rests something to do."""
        idle = "select id from agentmesh.agents where status = 'idle' and depth = 1"
        for agent in [row[0] for row in self.rig.conn.execute(idle)]:
            self.rig.conn.execute("select agentmesh.send(null, %s, 'go on')", [agent])

    def kill_an_agent(self) -> None:
        """End one that lives, and let another begin."""
        living = "select name from agentmesh.agents where status <> 'dead' and depth = 1 order by name"
        names = [row[0] for row in self.rig.conn.execute(living)]
        self.rig.kill(self._chosen.choice(names))
        self.rig.conn.execute("select agentmesh.reap(session_id) from agentmesh.agents where depth = 0")
        self.killed["agents"] += 1
        self._fork()

    def kill_a_worker(self) -> None:
        """Kill a worker, never the first, and start another."""
        which = self._chosen.randrange(1, len(self.workers))
        pid = self.workers[which].process.pid
        assert pid
        os.kill(pid, signal.SIGKILL)
        self.workers[which].join()
        self.workers[which] = self.rig.process(concurrency=self._slots)
        self.killed["workers"] += 1

    def figures(self) -> dict[str, float]:
        """Return what the processes and the server hold now."""
        figures: dict[str, float] = {"model calls": self.rig.model.count, "connections": self._connections()}
        for number, worker in enumerate(self.workers):
            process = psutil.Process(worker.process.pid)
            label = "first worker" if number == 0 else "another worker"
            seen = {"MB": process.memory_info().rss / 1e6, "threads": process.num_threads(), "files": process.num_fds()}
            for what, value in seen.items():
                figures[f"{label}, {what}"] = max(value, figures.get(f"{label}, {what}", 0))
        states = "select count(*) filter (where status = 'running') from agentmesh.agents"
        figures["agents running"] = float(self.rig.one(states) or 0)
        return figures

    def _connections(self) -> float:
        ours = "datname = current_database() and application_name ~ 'worker|listener'"
        return float(self.rig.one(f"select count(*) from pg_stat_activity where {ours}") or 0)

    def tables(self) -> list[dict[str, Any]]:
        """Return rows, dead rows and sizes of the tables that change."""
        with self.rig.conn.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(_TABLES).fetchall()


class Crowd(Rig):
    """A rig whose agents all do the same, for as long as they are asked."""

    def __init__(self, url: str, conn: psycopg.Connection, workdir: Path, agents: int, delay: float) -> None:
        super().__init__(url, conn, workdir)
        self.model.stop()
        self._agents, self._delay = agents, delay
        self.model = Simulator(self._answer, record=False)
        self.model.start()
        self._closers.insert(1, self.model.stop)

    def _answer(self, view: ChatRequestView) -> ScriptedReply:
        step = view.steps_since(view.fork.index if view.fork else -1)
        number = int(who(view).removeprefix("a") or 0)
        peer = f"a{(number + 1 + step) % self._agents}"
        cycle = (
            do(call("list_agents")),
            do(call("send", to=peer, message=f"word {step}")),
            do(call("wait", timeout=1.0)),
            do(call("bash", command="echo x")) if step % 12 == 3 else do(call("glob", pattern="*")),
            do(call("todo_write", items=[{"content": f"step {step}", "status": "pending"}])),
            say(f"done {step}"),
        )
        reply = cycle[step % len(cycle)]
        return ScriptedReply(reply.text, tool_calls=reply.tool_calls, first_byte_delay=self._delay)


def run(load: Load, seconds: float, *, tell: bool = True) -> Report:
    """Let it work for so long, then come to rest; return what was seen."""
    peaks = Peaks()
    began = time.monotonic()
    at = {"worker": 5.0, "agent": 3.0, "look": 0.0}
    while (passed := time.monotonic() - began) < seconds:
        load.prompt_the_idle()
        if passed >= at["agent"]:
            load.kill_an_agent()
            at["agent"] = passed + 2.0
        if passed >= at["worker"]:
            load.kill_a_worker()
            at["worker"] = passed + 15.0
        if passed >= at["look"]:
            figures = load.figures()
            peaks.note(figures, load.tables())
            at["look"] = passed + EVERY
            if tell:
                print(
                    f"{passed:5.0f} s ", ", ".join(f"{name} {value:.0f}" for name, value in figures.items()), flush=True
                )
        time.sleep(0.5)
    busy = _until_rest(load)
    load.rig.conn.execute("select pg_stat_force_next_flush()")
    with translated():
        broken = violations(load.rig.conn)
    left = load.tables()
    peaks.note({}, left)
    return Report(broken, busy, load.rig.model.count, load.killed, peaks, left)


def _until_rest(load: Load) -> list[str]:
    """Wait until nobody works; return who still does."""
    working = "select coalesce(array_agg(name order by name), '{}') from agentmesh.agents where status = 'running'"
    deadline = time.monotonic() + _SETTLE
    while (busy := load.rig.one(working)) and time.monotonic() < deadline:
        time.sleep(0.5)
    return list(busy)


@contextmanager
def made(agents: int, workers: int, seed: str, delay: float) -> Iterator[Load]:
    """Yield a load on a server of its own."""
    with ExitStack() as closing:
        folder = closing.enter_context(own_folder())
        cluster = Cluster(folder / "server")
        closing.callback(cluster.close)
        url = cluster.database()
        workdir = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        conn = connector(url)()
        closing.callback(conn.close)
        rig = Crowd(url, conn, workdir, agents, delay)
        closing.callback(rig.close)
        yield Load(rig, agents, workers, seed)


def _print(report: Report, agents: int, seconds: float) -> None:
    print(f"\n{agents} agents, {seconds:.0f} s: {report.calls} model calls, killed {dict(report.killed)}")
    for name, value in report.peaks.figures.items():
        print(f"  most {name}: {value:.0f}")
    print(f"  {'table':16} {'rows':>9} {'dead':>8} {'most dead':>10} {'MB':>8} {'most MB':>8} {'vacuums':>8}")
    for table in sorted(report.tables, key=lambda table: -table["bytes"]):
        name, most = table["name"], report.peaks
        print(
            f"  {name:16} {table['live']:9} {table['dead']:8} {most.dead.get(name, 0):10} {table['bytes'] / 1e6:8.1f}"
            f" {most.bytes.get(name, 0) / 1e6:8.1f} {table['vacuums']:8}"
        )
    for line in [*report.broken, *(f"{name} did not come to rest" for name in report.busy)]:
        print(f"  BROKEN {line}")
    print("deep check:", "clean" if not report.broken else f"{len(report.broken)} broken")


def main() -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--minutes", type=float, default=10.0)
    options.add_argument("--agents", type=int, default=200)
    options.add_argument("--workers", type=int, default=4)
    options.add_argument("--delay", type=float, default=2.0, help="seconds until a model begins to answer")
    options.add_argument("--seed", default="1")
    given = options.parse_args()
    with made(given.agents, max(given.workers, 2), given.seed, given.delay) as load:
        report = run(load, given.minutes * 60)
    _print(report, given.agents, given.minutes * 60)
    return 1 if report.broken or report.busy else 0


if __name__ == "__main__":
    sys.exit(main())
