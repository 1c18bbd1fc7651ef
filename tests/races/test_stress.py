"""All verbs at random from several threads for a moment; then everything must add up.

Seeded: the choices of each thread repeat, their interleaving does not. What is found here belongs into test_forced.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from agentmesh.domain.errors import Refused, WaitCircle
from agentmesh.domain.ids import AgentId, WorkerId
from agentmesh.domain.states import WaitOutcome
from agentmesh.store import agents, mailbox, steps, waits, workers
from agentmesh.store.call import Lease
from agentmesh.store.errors import translated
from agentmesh.store.tx import is_unchanged
from tests.fixtures.invariants import violations
from tests.fixtures.mesh import Mesh

SECONDS = 2.5
MAX_CHILDREN, MAX_AGENTS = 4, 14

_UNDONE = (psycopg.errors.SerializationFailure, psycopg.errors.InternalError_)
"""What no order of locks prevents, and ``Database.run`` repeats; deadlocks and timeouts it would, too."""


class Player:
    """One client with a connection of its own; ``errors`` holds what no verb may raise."""

    def __init__(self, url: str, session: Any, seed: int, stop: float) -> None:
        self.conn = psycopg.connect(url, autocommit=True)
        self.session = session
        self.random = random.Random(seed)
        self.stop = stop
        self.errors: Counter[str] = Counter()
        self.done: Counter[str] = Counter()

    def play(self) -> None:
        with self.conn:
            while time.monotonic() < self.stop:
                try:
                    with suppress(Refused), translated():
                        self.move()
                except Exception as error:  # noqa: BLE001  collected for the test
                    cause = error.__cause__
                    if not isinstance(cause, _UNDONE) or not is_unchanged(cause):
                        self.errors[repr(error)] += 1

    def move(self) -> None:
        raise NotImplementedError

    def somebody(self, status: str = "running") -> AgentId | None:
        query = "select id from agentmesh.agents where session_id = %s and status = %s"
        found = self.conn.execute(query, [self.session, status]).fetchall()
        return self.random.choice(found)[0] if found else None


class Person(Player):
    """Forks, writes, interrupts and kills."""

    def move(self) -> None:
        agent, other = self.somebody(), self.somebody(self.random.choice(["running", "idle"]))
        match self.random.randrange(8):
            case 0 | 1 if agent:
                agents.fork(self.conn, agent, "x", "work")
                self.done["fork"] += 1
            case 2 | 3 | 4 if other:
                mailbox.send(self.conn, agent if self.random.random() < 0.7 else None, other, "x")
                self.done["send"] += 1
            case 5 if agent:
                agents.interrupt(self.conn, agent)
            case 6 if agent and self.random.random() < 0.4:
                self.done["kill"] += len(agents.kill(self.conn, agent))
            case 7 if other:
                waits.wait_begin(self.conn, other, None, 0.01)


class Engine(Player):
    """A worker: claims agents and plays their turns."""

    worker: WorkerId

    def play(self) -> None:
        me = workers.Identity("testhost", "tester", 1, 4, ("demo",))
        self.worker = workers.join(self.conn, me)
        super().play()

    def move(self) -> None:
        workers.claim(self.conn, self.worker, 2)
        query = "select id, epoch from agentmesh.agents where worker_id = %s"
        for agent, epoch in self.conn.execute(query, [self.worker]).fetchall():
            with suppress(Refused), translated():
                self.step(Lease(agent, self.worker, epoch))
        if self.random.random() < 0.02:
            workers.release(self.conn, self.worker)
            self.worker = workers.join(self.conn, workers.Identity("testhost", "tester", 1, 4, ("demo",)))

    def step(self, lease: Lease) -> None:
        waiting = waits.registered(self.conn, lease.agent_id)
        if waiting:
            final = WaitOutcome.TIMEOUT if waiting.remaining <= 0 else None
            self.done["wait"] += waits.wait_take(self.conn, lease.agent_id, final, lease) is not None
            return
        open_calls = steps.open_calls(self.conn, lease.agent_id)
        if open_calls:
            for call in open_calls:
                self.answer(lease.call(call.seq, call.ordinal), call.name)
            return
        try:
            with translated():
                steps.begin_step(self.conn, lease, 0)
        except Refused as refused:
            if refused.code == "AM005":
                steps.stop_turn(self.conn, lease)
            return
        names = self.random.choice([[], [], ["send", "fork"], ["send", "wait"], ["bash", "kill", "wait"]])
        calls = [{"call_id": str(n), "name": name, "arguments": "{}"} for n, name in enumerate(names)]
        steps.finish_step(self.conn, lease, {"text": "x"}, calls, {"input_tokens": 1})
        self.done["step"] += 1

    def answer(self, call: Lease, name: str) -> None:
        assert call.ordinal is not None
        other = self.somebody() or call.agent_id
        try:
            with translated():
                match name:
                    case "send":
                        mailbox.send(self.conn, call.agent_id, other, "x", None, call)
                    case "fork":
                        agents.fork(self.conn, call.agent_id, "x", "work", call)
                    case "kill":
                        agents.kill(self.conn, other, call.agent_id, call)
                    case "wait":
                        targets = [{"agent_id": str(other), "id": str(other)}] if self.random.random() < 0.7 else None
                        waits.wait_begin(self.conn, call.agent_id, targets, 0.05, call)
                    case _:
                        steps.start_calls(self.conn, call, [call.ordinal])
                        steps.finish_calls(self.conn, call, {call.ordinal: {"output": "x"}})
        except Refused as refused:
            self.done["circle"] += isinstance(refused, WaitCircle)
            steps.finish_calls(self.conn, call, {call.ordinal: {"error": refused.message}})


@pytest.mark.parametrize("seed", [1, 2])
def test_after_a_storm_of_verbs_everything_adds_up(mesh: Mesh, database_url: str, seed: int):
    mesh.run(workers.release, mesh.worker)
    limits = "update agentmesh.sessions set max_children = %s, max_agents = %s"
    mesh.conn.execute(limits, [MAX_CHILDREN, MAX_AGENTS])
    mesh.send(None, mesh.root, "go")
    stop = time.monotonic() + SECONDS
    kinds: list[type[Player]] = [Person, Person, Engine, Engine]
    players = [kind(database_url, mesh.session, seed * 100 + n, stop) for n, kind in enumerate(kinds)]
    watching = threading.Event()
    seen: list[str] = []
    watcher = threading.Thread(target=watch, args=(database_url, watching, seen))
    watcher.start()
    with ThreadPoolExecutor(len(players)) as threads:
        list(threads.map(lambda player: player.play(), players))
    watching.set()
    watcher.join()
    done = sum((player.done for player in players), Counter[str]())
    assert sum((player.errors for player in players), Counter[str]()) == {}
    assert seen == [], "while they raced"
    assert violations(mesh.conn) == []
    assert mesh.one("select deadlocks from pg_stat_database where datname = current_database()") == 0
    assert min(done[kind] for kind in ("fork", "send", "kill", "wait", "step")) > 0, f"too little happened: {done}"


def watch(url: str, stop: threading.Event, seen: list[str]) -> None:
    """Look at the invariants while the others race: each rule reads one snapshot, so each must hold at any instant."""
    with psycopg.connect(url, autocommit=True) as conn:
        while not stop.wait(0.05):
            seen += violations(conn)
