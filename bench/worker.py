"""The real Worker in a process of its own, that says on stdout when what happened; and the handle on such a process.

Times are CLOCK_MONOTONIC in nanoseconds, which processes of one machine share.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import AgentStatus
from agentmesh.engine.engine import Engine
from agentmesh.engine.feed import Feed
from agentmesh.engine.worker import Worker
from agentmesh.llm.models import Models
from agentmesh.llm.port import ChatModel
from agentmesh.llm.provider import Provider
from agentmesh.store import steps, waits, workers
from agentmesh.store.listener import Listener
from agentmesh.store.tx import Database
from agentmesh.tools import toolset
from agentmesh.tools.gate import ToolGate
from bench.place import HOST, USER
from bench.puppet import Puppet, PuppetOr

Event = dict[str, Any]
_PATIENCE = 120.0


class WorkerProcess:
    """A worker of the session's host and user, from here; use it as a context manager."""

    def __init__(
        self,
        url: str,
        *,
        concurrency: int = 16,
        mute: bool = False,
        base_url: str = "",
        prefix_gate: int = 2000,
        slots: int = 0,
        max_tokens: int = 0,
    ) -> None:
        """``mute``: its model never answers. ``base_url``: of a model server for all agents without instruction.

        ``prefix_gate`` is the setting of that name, ``slots`` that of the server; 0: it does not say. ``max_tokens``:
        of an answer; 0: as the server likes.
        """
        options = [
            "--concurrency",
            str(concurrency),
            "--base-url",
            base_url,
            "--prefix-gate",
            str(prefix_gate),
            "--slots",
            str(slots),
            "--max-tokens",
            str(max_tokens),
            *(["--mute"] if mute else []),
        ]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.worker", url, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parent.parent,
        )
        self.pid = self._process.pid
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, name="events", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        self.next("ready")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()

    def next(self, what: str, agent: AgentId | None = None) -> Event:
        """Return the next event of a kind (and of an agent), skipping others."""
        while True:
            event = self._events.get(timeout=_PATIENCE)
            if event["event"] == "ended":
                raise RuntimeError("the worker's process has ended")
            if event["event"] == what and (agent is None or event["agent"] == str(agent)):
                return event

    def forget(self) -> None:
        """Skip the events so far."""
        while not self._events.empty():
            self._events.get()

    def usage(self) -> Event:
        """Return the processor seconds (cpu) and the statements of the process so far."""
        assert self._process.stdin is not None
        self._process.stdin.write("usage\n")
        self._process.stdin.flush()
        return self.next("usage")

    def kill(self) -> float:
        """Kill it as kill -9 does; return when, by the monotonic clock."""
        at = time.monotonic()
        self._process.kill()
        self._process.wait()
        return at

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = json.loads(line)
            self._events.put(event)
        self._events.put({"event": "ended"})


class Statements:
    """Counts the statements of this process: each waits for its answer once, by a cursor or without."""

    def __init__(self) -> None:
        self.count = 0
        self._wait: Callable[..., Any] = psycopg.Connection.wait
        counter, wait = self, self._wait

        def counted(connection: Any, *args: Any, **kwargs: Any) -> Any:
            counter.count += 1  # threads may lose one in thousands
            return wait(connection, *args, **kwargs)

        psycopg.Connection.wait = counted  # type: ignore[method-assign, assignment]


class WatchedDatabase(Database):
    """Tells when the commits that figures are about have returned."""

    def __init__(self, url: str, say: Callable[..., None]) -> None:
        super().__init__(url, role="worker")
        self._say = say

    def run(self, function: Callable[..., Any], /, *args: Any, idempotent: bool = False, **kwargs: Any) -> Any:
        """Run it, and tell."""
        result = super().run(function, *args, idempotent=idempotent, **kwargs)
        at = time.monotonic_ns()
        if result is not None and function in (waits.wait_take, waits.wait_begin):
            self._say("taken", agent=str(args[0]), at=at, outcome=result["outcome"])
        elif function is waits.wait_begin:
            self._say("waiting", agent=str(args[0]), at=at)
        elif function is steps.finish_step and result.status != AgentStatus.RUNNING:
            self._say("finished", agent=str(args[0].agent_id), at=at)
        return result


def main() -> None:
    """Run a worker until stdin ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--concurrency", type=int, required=True)
    parser.add_argument("--base-url", default="")
    parser.add_argument("--prefix-gate", type=int, required=True)
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--max-tokens", type=int, default=0)
    parser.add_argument("--mute", action="store_true")
    options = parser.parse_args()
    statements = Statements()
    lock = threading.Lock()

    def say(event: str, **values: Any) -> None:
        line = json.dumps({"event": event, "statements": statements.count, **values})
        with lock:
            print(line, flush=True)

    database = WatchedDatabase(options.url, say)
    model: ChatModel = Puppet(mute=options.mute)
    if options.base_url:
        provider = Provider(
            "puppet", options.base_url, slots=options.slots or None, max_tokens=options.max_tokens or None
        )
        model = PuppetOr(Models({"puppet": provider}))
    engine = Engine(
        database, model, toolset.builtin(database), ToolGate(), Feed(database), prefix_gate=options.prefix_gate
    )
    identity = workers.Identity(HOST, USER, os.getpid(), options.concurrency, ("puppet",))
    worker = Worker(
        engine,
        identity,
        lambda heard, again, setup: Listener(options.url, on_notify=heard, on_reconnect=again, setup=setup),
    )
    worker.start()
    say("ready")
    for _ in sys.stdin:
        used = resource.getrusage(resource.RUSAGE_SELF)
        say("usage", cpu=used.ru_utime + used.ru_stime)
    worker.stop()
    model.close()
    database.close()


if __name__ == "__main__":
    main()
