"""Streaming: tokens that a worker reads in a processor second, and how far it is behind with 100 streams at once."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Final

import psycopg
from psycopg import sql

from agentmesh.domain.ids import AgentId
from agentmesh.store import mailbox, status
from bench.harness import Bench, Figure, Target, Values, percentile, ratio
from bench.machine import tree_seconds
from bench.metronome import Metronome, told
from bench.peers.frameworks.rivals import SDK
from bench.peers.process import Peer
from bench.place import Mesh
from bench.worker import WorkerProcess

_RATE: Final = 50.0
"""Tokens a second of each agent."""
_AT_ONCE: Final = 8
"""Agents that stream as fast as they are read."""


def run(bench: Bench) -> None:
    """Measure both."""
    agents = bench.size(100, 10)
    with (
        bench.place.mesh() as mesh,
        Metronome() as models,
        WorkerProcess(mesh.url, concurrency=agents + 4, base_url=models.base_url) as worker,
        Peer(Path(sys.executable), "bench.peers.frameworks.bare_sdk") as sdk,
    ):
        sdk.ask({"base_url": models.base_url, "workdir": "", "system": "You write.", "tools": []}, seconds=300)
        crowd = _Crowd(mesh, worker, models, bench.place.server_pid)
        mesh.settle_storage()
        _throughput(bench, crowd, sdk)
        _paced(bench, crowd, agents)


class _Crowd:
    """Agents of one session that stream."""

    def __init__(self, mesh: Mesh, worker: WorkerProcess, models: Metronome, server_pid: int) -> None:
        self.mesh, self.models = mesh, models
        self._worker = worker
        self._server_pid = server_pid
        self._agents: list[AgentId] = []

    def used(self) -> dict[str, float]:
        """Return the processor seconds until now of everybody."""
        return {
            "worker": float(self._worker.usage()["cpu"]),
            "database": tree_seconds([self._server_pid]),
            "model server": tree_seconds([self.models.pid]),
        }

    def stream(self, agents: int, tokens: int, rate: float) -> dict[AgentId, float]:
        """Let so many stream; return when each answer was committed, by the monotonic clock."""
        while len(self._agents) < agents:
            self._agents.append(self.mesh.fork(self.mesh.root))
        self._worker.forget()
        for agent in self._agents[:agents]:
            self.mesh.database.run(mailbox.send, None, agent, told(tokens, rate))
        ended = [self._worker.next("finished") for _ in range(agents)]
        return {AgentId(event["agent"]): event["at"] / 1e9 for event in ended}

    def answers(self, agents: int, tokens: int) -> dict[AgentId, str]:
        """Return the newest answers; raise when one is not whole."""
        rows = self.mesh.bare.execute(
            "select distinct on (agent_id) agent_id::text, content ->> 'text' from agentmesh.transcript"
            " where kind = 'assistant' and agent_id = any (%s) order by agent_id, seq desc",
            [self._agents[:agents]],
        ).fetchall()
        if len(rows) != agents or any(len(text.split()) != tokens for _, text in rows):
            raise RuntimeError("an answer is not whole")
        return {AgentId(agent): text for agent, text in rows}


def _throughput(bench: Bench, crowd: _Crowd, sdk: Peer) -> None:
    tokens = bench.size(4000, 200)
    figure = Figure(
        "streaming",
        f"tokens read in a processor second, {_AT_ONCE} agents streaming as fast as they are read",
        {"agentmesh, worker": "/s", SDK: "/s", f"agentmesh / {SDK}": "x"},
        [Target(f"agentmesh / {SDK}", ">=", 2.0)],
        repetitions=3,
        note=f"Answers of {tokens:,} tokens, each an event of its own. agentmesh tells screens meanwhile what is "
        "written, ten times a second, and stores the answers; the SDK's process joins the text, one stream after "
        "another, and drops it. Only the reader's process is counted: the database's share is in P23's cost.",
    )
    crowd.stream(_AT_ONCE, tokens // 10, 0)
    sdk.ask({"prompt": told(tokens // 10, 0)})

    def repeat() -> Values:
        before = crowd.used()
        crowd.stream(_AT_ONCE, tokens, 0)
        ours = _AT_ONCE * tokens / (crowd.used()["worker"] - before["worker"])
        crowd.answers(_AT_ONCE, tokens)
        done = sdk.ask({"prompt": told(tokens, 0)})
        if done["events"] != tokens:
            raise RuntimeError(f"the SDK handed out {done['events']} tokens")
        theirs = tokens / done["processor"]
        return {"agentmesh, worker": ours, SDK: theirs, f"agentmesh / {SDK}": ratio(ours, theirs)}

    bench.measure(repeat, figure)


def _paced(bench: Bench, crowd: _Crowd, agents: int) -> None:
    seconds = bench.size(6, 2, 60)
    tokens = int(_RATE * seconds)
    figure = Figure(
        "100 streams",
        f"{agents} agents of one worker stream {_RATE:g} tokens/s each for {seconds} s",
        {
            "behind p50": "ms",
            "behind p99": "ms",
            "behind p50, first third": "ms",
            "behind p50, last third": "ms",
            "answer committed after its last token p50": "ms",
            "answer committed after its last token, worst": "ms",
            "model server late p99": "ms",
            "processor of the worker": "%",
            "processor of the database": "%",
            "processor of the model server": "%",
            "tokens per processor second of the worker": "/s",
        },
        [Target("behind p99", "<=", 250.0)],
        repetitions=2,
        note="Every token says when it left. Behind: a listener on the session's channel, as a screen has, looks at "
        "the newest token of each agent in each notice when it comes. Falling behind would show as growth from the "
        "first third to the last. The processors' shares are of one core. The model server keeps time by itself; "
        "what it was late is part of what the worker is behind.",
    )

    def repeat() -> Values:
        crowd.models.late()
        before, began = crowd.used(), time.monotonic()
        with _watching(crowd) as seen:
            committed = crowd.stream(agents, tokens, _RATE)
        after, took = crowd.used(), time.monotonic() - began
        shares = {name: (after[name] - before[name]) / took * 100 for name in after}
        last = {agent: crowd.models.left(text) for agent, text in crowd.answers(agents, tokens).items()}
        stored = [(committed[agent] - left) * 1e3 for agent, left in last.items() if left is not None]
        behind = [lag * 1e3 for _, lag in seen]
        third = len(behind) // 3
        return {
            "behind p50": statistics.median(behind),
            "behind p99": percentile(behind, 0.99),
            "behind p50, first third": statistics.median(behind[:third]),
            "behind p50, last third": statistics.median(behind[-third:]),
            "answer committed after its last token p50": statistics.median(stored),
            "answer committed after its last token, worst": max(stored),
            "model server late p99": percentile(crowd.models.late(), 0.99) * 1e3,
            **{f"processor of the {name}": share for name, share in shares.items()},
            "tokens per processor second of the worker": agents * tokens / (after["worker"] - before["worker"]),
        }

    bench.measure(repeat, figure)


@contextmanager
def _watching(crowd: _Crowd) -> Iterator[list[tuple[float, float]]]:
    """Listen as a screen does; yield when a notice came and how far behind its newest tokens were, while it lasts."""
    seen: list[tuple[float, float]] = []
    ended = Event()

    def watch() -> None:
        with psycopg.connect(crowd.mesh.url, autocommit=True) as connection:
            connection.execute(sql.SQL("listen {}").format(sql.Identifier(status.session_channel(crowd.mesh.session))))
            listening.set()
            while not ended.is_set():
                for notice in connection.notifies(timeout=0.2):
                    now = time.monotonic()
                    if notice.payload.startswith("live "):
                        texts = [text for _, _, text in json.loads(notice.payload[5:]).values()]
                        left = [crowd.models.left(text) for text in texts]
                        seen.extend((now, now - when) for when in left if when is not None)

    listening = Event()
    thread = Thread(target=watch, name="watching")
    thread.start()
    listening.wait(30)
    try:
        yield seen
    finally:
        ended.set()
        thread.join()
