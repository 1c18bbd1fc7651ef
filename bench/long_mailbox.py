"""P19: many messages through one mailbox, one after another: whether the last takes as long as the first.

First undisturbed; then while a snapshot is held, as a forgotten transaction does, and after it was released.
"""

from __future__ import annotations

import itertools
import os
import statistics
import time
from typing import Final

import psycopg

from agentmesh.domain.ids import WorkerId
from agentmesh.store import external, mailbox, waits, workers
from bench.harness import Bench, Figure, Target, Values, ratio
from bench.pictures import Curve
from bench.place import HOST, USER, Mesh

_BODY: Final = "x" * 100
_TOGETHER: Final = """
select count(agentmesh.send(%(sender)s, %(agent)s, %(body)s)),
  count(agentmesh.wait_begin(%(agent)s, null, 0, row(%(worker)s, %(epoch)s, null, null, null)::agentmesh.caller))
from generate_series(1, %(count)s)
"""
_WINDOW: Final = 100
_MANY: Final = 48
"""Messages in a commit that is not timed."""
_ROUNDS: Final = 20
"""Of each tenth: in each some commits of many messages, then some messages one by one, which are timed."""
_PATIENCE: Final = 60.0
_ROOM: Final = 1.3


def run(bench: Bench) -> None:
    """Measure P19."""
    with bench.place.mesh() as mesh:
        me = mesh.database.run(workers.join, workers.Identity(HOST, USER, os.getpid(), 1, ()))
        _growth(bench, mesh, me)
        _held(bench, mesh, me)


class _Mailbox:
    """An external agent's, so that no worker's loop is in a figure."""

    _names = itertools.count(1)

    def __init__(self, mesh: Mesh, me: WorkerId) -> None:
        self._mesh = mesh
        self._agent = mesh.database.run(external.guest, mesh.session, f"client{next(self._names)}")
        self._lease = mesh.database.run(external.join, me, self._agent)

    def message(self) -> float:
        """Send one message and take it; return the milliseconds."""
        began = time.perf_counter()
        self._mesh.database.run(mailbox.send, self._mesh.root, self._agent, _BODY)
        taken = self._mesh.database.run(waits.wait_begin, self._agent, None, 0, self._lease)
        if not taken or not taken["results"]:
            raise RuntimeError(f"the message was not there: {taken}")
        return (time.perf_counter() - began) * 1e3

    def messages(self, count: int) -> None:
        """Send so many and take each, in one commit."""
        values = {"sender": self._mesh.root, "agent": self._agent, "body": _BODY, "count": count}
        of_lease = {"worker": self._lease.worker_id, "epoch": self._lease.epoch}
        done = self._mesh.bare.execute(_TOGETHER, {**values, **of_lease}).fetchone()
        if done != (count, count):
            raise RuntimeError(f"{done} of {count} messages were sent and taken")


def _growth(bench: Bench, mesh: Mesh, me: WorkerId) -> None:
    alone, commits = bench.size(10, 2, 250), bench.size(5, 0, 0)
    together = commits * _MANY
    tenth = _ROUNDS * (alone + together)
    messages = 10 * tenth
    steps = {(n + 1) * tenth: f"up to {(n + 1) * tenth:,}" for n in range(10)}
    first, last = steps[tenth], steps[10 * tenth]
    figure = Figure(
        "P19",
        f"{messages:,} messages through one mailbox, each sent and then taken by its agent",
        {**dict.fromkeys(steps.values(), "ms"), "last tenth / first": "x"},
        [Target("last tenth / first", "<=", _ROOM)],
        repetitions=1,
        note="Send and take, two commits: the median of each tenth. The agent is an external one, so that no worker's "
        "loop is in it. "
        + (
            f"To keep it short {together} of each {alone + together} messages are sent and taken by the same functions "
            f"in {commits} commits, and only the other {alone} go one by one and are timed; in a full run each does."
            if together
            else "Each is timed."
        ),
        picture=Curve("messages so far", {"agentmesh": dict(list(steps.items())[::3])}),
    )

    def repeat() -> Values:
        box = _Mailbox(mesh, me)
        mesh.settle_storage()
        found = {}
        for name in steps.values():
            times = []
            for _ in range(_ROUNDS):
                for _ in range(commits):
                    box.messages(_MANY)
                times += [box.message() for _ in range(alone)]
            found[name] = statistics.median(times)
        return {**found, "last tenth / first": ratio(found[last], found[first])}

    bench.measure(repeat, figure)


def _held(bench: Bench, mesh: Mesh, me: WorkerId) -> None:
    seconds = float(bench.size(4, 1, 60))
    figure = Figure(
        "P19 held",
        f"the same while a snapshot is held for {seconds:g} s, and after",
        {"before": "ms", "at its end": "ms", "at its end / before": "x", "back after": "s"},
        [Target("back after", "<=", _PATIENCE)],
        repetitions=1,
        note=f"Medians of {_WINDOW} messages. What a snapshot may still see cannot be cleaned away, so that a "
        f"mailbox's index grows. Back after: from the release until at most {_ROOM:g} × before. In a full run the "
        "snapshot is held for 60 s, as the target says.",
    )

    def repeat() -> Values:
        box = _Mailbox(mesh, me)
        mesh.settle_storage()

        def window() -> float:
            return statistics.median(box.message() for _ in range(_WINDOW))

        before = window()
        with psycopg.connect(mesh.url) as holder:
            holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            holder.execute("select count(*) from agentmesh.sessions")
            until = time.perf_counter() + seconds
            end = window()
            while time.perf_counter() < until:
                end = window()
            holder.rollback()
        released = time.perf_counter()
        while window() > _ROOM * before and time.perf_counter() < released + _PATIENCE:
            pass
        return {
            "before": before,
            "at its end": end,
            "at its end / before": ratio(end, before),
            "back after": time.perf_counter() - released,
        }

    bench.measure(repeat, figure)
