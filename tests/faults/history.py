"""How fast are the verbs beside a million old mails, for an agent with a hundred thousand rows of conversation?

    python -m tests.faults.history

Two databases on one server, one small and one with the history; each verb is called in both by turns, in transactions
that are rolled back, so a figure is the statement's own time, without the commit. Prints medians in milliseconds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import psycopg

from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import WaitOutcome
from agentmesh.store import agents, mailbox, schema, steps, waits, workers
from agentmesh.store.call import Lease
from tests.faults.cluster import Cluster, own_folder
from tests.fixtures.mesh import Mesh

_WARM = 7
"""Calls before the first that counts: by then plpgsql has its plans."""

_HISTORY = """
set session_replication_role = replica;
insert into agentmesh.transcript (agent_id, seq, kind, content)
select {agent}, n, case when n % 2 = 0 then 'assistant' else 'user' end, jsonb_build_object('text', repeat('word ', 40))
from generate_series((select coalesce(max(seq), 0) + 1 from agentmesh.transcript where agent_id = {agent}), %(rows)s) n;
insert into agentmesh.mail (session_id, sender, recipient, body, read_at, read_seq)
select {session}, {child}, {agent}, 'an old message ' || n, now(), n from generate_series(1, %(mails)s / 2) n;
insert into agentmesh.mail (session_id, sender, recipient, body, read_at, read_seq)
select {session}, {agent}, {child}, 'an old message ' || n, now(), n from generate_series(1, %(mails)s / 2) n;
reset session_replication_role;
"""


class Scene:
    """A session in which each verb can be called: root and child have the history, the others are new."""

    def __init__(self, url: str, mails: int, rows: int) -> None:
        self.conn = psycopg.connect(url, autocommit=True)
        mesh = Mesh(self.conn)
        self.root, self.worker, self.other = mesh.root, mesh.worker, mesh.join()
        self.child = mesh.fork(mesh.root, "child", "work")
        self.idle = mesh.fork(mesh.root, "idle")
        mesh.fork(self.child, "grandchild")
        names = {"agent": mesh.root, "child": self.child, "session": mesh.session}
        written = _HISTORY.format(**{name: f"'{value}'::uuid" for name, value in names.items()})
        if mails:
            for statement in written.split(";\n"):
                text = statement.replace("%(rows)s", str(rows)).replace("%(mails)s", str(mails))
                self.conn.execute(text)
            self.conn.execute("vacuum analyze")
        self.wait_call, self.send_call = mesh.call(mesh.root, "wait", "send")
        self.step = self.lease(mesh, self.child)
        mesh.run(steps.begin_step, self.step, 0)
        self.queued = mesh.fork(mesh.root, "queued", "work")
        self.seq = mesh.one("select max(seq) from agentmesh.transcript where agent_id = %s", self.child)
        self.targets = mesh.targets(self.child)

    def lease(self, mesh: Mesh, agent: AgentId) -> Lease:
        """Own the agent."""
        mesh.claim()
        return mesh.lease(agent)

    def milliseconds(self, call: Callable[[Scene], Any]) -> float:
        """Call it, undo it, and return how long it took."""
        with self.conn.transaction(force_rollback=True):
            began = time.perf_counter()
            call(self)
            return (time.perf_counter() - began) * 1000


def _wait(scene: Scene, final: WaitOutcome | None) -> None:
    waits.wait_begin(scene.conn, scene.root, scene.targets, 30, scene.wait_call)
    waits.wait_take(scene.conn, scene.root, final, scene.wait_call)


CALLS: dict[str, Callable[[Scene], Any]] = {
    "send by a person": lambda s: mailbox.send(s.conn, None, s.root, "x", "key"),
    "send by an agent": lambda s: mailbox.send(s.conn, s.root, s.idle, "x", None, s.send_call),
    "fork": lambda s: agents.fork(s.conn, s.root, "new", "work"),
    "wait begins, looks, times out": lambda s: _wait(s, WaitOutcome.TIMEOUT),
    "a step begins": lambda s: steps.begin_step(s.conn, s.step, s.seq),
    "a step ends the turn": lambda s: steps.finish_step(s.conn, s.step, {"text": "done"}, [], {}),
    "interrupt": lambda s: agents.interrupt(s.conn, s.queued),
    "kill": lambda s: agents.kill(s.conn, s.child),
    "claim": lambda s: workers.claim(s.conn, s.other, 4),
    "tick": lambda s: workers.tick(s.conn, s.worker, {s.root: 1, s.child: 1}, schema.needed()),
}


def main() -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--mails", type=int, default=1_000_000)
    options.add_argument("--rows", type=int, default=100_000)
    options.add_argument("--times", type=int, default=200)
    given = options.parse_args()
    with own_folder() as folder:
        cluster = Cluster(folder / "server")
        try:
            small, large = (Scene(cluster.database(), *size) for size in ((0, 0), (given.mails, given.rows)))
            print(f"{'':32} {'new':>8} {'old':>8}  ms, medians of {given.times}")
            for name, call in CALLS.items():
                times: tuple[list[float], list[float]] = ([], [])
                for _ in range(given.times + _WARM):
                    for scene, taken in zip((small, large), times, strict=True):
                        taken.append(scene.milliseconds(call))
                new, old = (median(taken[_WARM:]) for taken in times)
                print(f"{name:32} {new:8.2f} {old:8.2f}", flush=True)
            small.conn.close()
            large.conn.close()
        finally:
            cluster.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
