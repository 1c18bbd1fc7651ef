"""The agents of a worker, and the holder of each: a thread, the watch, or nobody.

Only one thread at a time handles an agent. Every change of holder is a transition here, under one lock, and one that
comes too late is refused. So a wake-up, an interrupt and a loss may arrive in the same instant.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import Agent
from agentmesh.engine.turn import Runner
from agentmesh.store.call import Lease


class Holder(Enum):
    """The holder of an agent."""

    NOBODY = auto()
    """It is inside a wait, or has just come. Becomes QUEUED, WATCH, GONE."""
    QUEUED = auto()
    """It waits for a thread. Becomes THREAD, WATCH (to be interrupted), OFFERED, GONE."""
    THREAD = auto()
    """A thread runs it. Becomes NOBODY, GONE."""
    WATCH = auto()
    """The watch ends its wait or its turn. Becomes NOBODY, QUEUED, GONE."""
    OFFERED = auto()
    """Other workers are asked whether they can run it. Becomes QUEUED, GONE."""
    GONE = auto()
    """It is no longer the worker's; final. The same agent may be here again as another host."""


@dataclass(slots=True, eq=False)
class LeasedAgent:
    """An agent under one lease."""

    agent: Agent
    lease: Lease
    holder: Holder = Holder.NOBODY
    runner: Runner | None = None
    """Holds its conversation; made by the first thread that runs it, and again after a long rest."""
    rested: float = 0.0
    """When (monotonic) a thread last had it."""
    doubtful: bool = False
    """Whether its wait may be over, because it is unknown if the last look took the result."""
    awaits: int = 0
    """How many agents its wait is for; 0 if nobody counted."""
    pending: bool = False
    """Whether it waits for a person or a sub-agent."""
    queued: int = 0
    """Its place in the queue for a thread; later ones are higher."""
    aside: int = 0
    """How many calls of its step only wait for other agents, which have the place of its thread meanwhile."""
    failures: int = 0
    """Runs in a row that the database refused to store."""


class LeasedAgents:
    """All agents of a worker; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hosted: dict[AgentId, LeasedAgent] = {}
        self._count = itertools.count()
        self.active = 0
        """How many have a thread or wait for one."""
        self.idle_since: float | None = time.monotonic()
        """Since when (monotonic) there has been none; None while there is one."""

    def get(self, agent: AgentId) -> LeasedAgent | None:
        """Return the agent, if it is here."""
        return self._hosted.get(agent)

    def all(self) -> list[LeasedAgent]:
        """Return the agents that are here now."""
        with self._lock:
            return list(self._hosted.values())

    def add(self, agents: Sequence[Agent]) -> list[LeasedAgent]:
        """Take in claimed agents; leave out those that are already here under the same lease."""
        new = []
        with self._lock:
            for agent in agents:
                here = self._hosted.get(agent.id)
                if agent.worker_id is None or (here and here.agent.epoch == agent.epoch):
                    continue
                hosted = LeasedAgent(agent, Lease(agent.id, agent.worker_id, agent.epoch))
                self._hosted[agent.id] = hosted
                new.append(hosted)
            if self._hosted:
                self.idle_since = None
        return new

    def queue(self, hosted: LeasedAgent) -> bool:
        """Put it in the queue for a thread; return False if it is too late."""
        with self._lock:
            if hosted.holder not in (Holder.NOBODY, Holder.WATCH, Holder.OFFERED):
                return False
            hosted.holder = Holder.QUEUED
            hosted.queued = next(self._count)
            self.active += 1
            return True

    def start(self, hosted: LeasedAgent) -> bool:
        """Give it to the calling thread; return False if it is too late."""
        with self._lock:
            if hosted.holder is not Holder.QUEUED:
                return False
            hosted.holder = Holder.THREAD
            return True

    def hold(self, hosted: LeasedAgent, *, queued: bool = False) -> bool:
        """Give it to the watch if nobody holds it, or, with ``queued``, if it waits for a thread."""
        with self._lock:
            if hosted.holder is Holder.QUEUED and queued:
                self.active -= 1
            elif hosted.holder is not Holder.NOBODY:
                return False
            hosted.holder = Holder.WATCH
            return True

    def offer(self, threads: int) -> list[LeasedAgent]:
        """Take the newest queued agents, which there are too few threads for, to offer them to other workers."""
        with self._lock:
            queued = [hosted for hosted in self._hosted.values() if hosted.holder is Holder.QUEUED]
            queued.sort(key=lambda hosted: hosted.queued)
            offered = queued[max(len(queued) - max(self.active - threads, 0), 0) :]
            for hosted in offered:
                hosted.holder = Holder.OFFERED
            self.active -= len(offered)
            return offered

    def lend(self, hosted: LeasedAgent) -> bool:
        """Note that one of its calls waits for other agents; return whether it is the first to do so."""
        with self._lock:
            hosted.aside += 1
            self.active -= hosted.aside == 1
            return hosted.aside == 1

    def take_back(self, hosted: LeasedAgent) -> bool:
        """Note that such a call goes on; return whether it was the last."""
        with self._lock:
            hosted.aside -= 1
            self.active += hosted.aside == 0
            return hosted.aside == 0

    def rest(self, hosted: LeasedAgent) -> bool:
        """Release it; return False if it is too late."""
        with self._lock:
            if hosted.holder not in (Holder.THREAD, Holder.WATCH):
                return False
            if hosted.holder is Holder.THREAD:
                self.active -= 1
                hosted.rested = time.monotonic()
            hosted.holder = Holder.NOBODY
            return True

    def let_conversations_go(self, before: float) -> None:
        """Drop the conversations of agents that no thread has had since ``before``; the rows have them."""
        with self._lock:
            for hosted in self._hosted.values():
                if hosted.holder is Holder.NOBODY and hosted.rested < before:
                    hosted.runner = None

    def drop(self, hosted: LeasedAgent, *, by_its_thread: bool = False) -> bool:
        """Let it go; if a thread runs it, only that thread may drop it."""
        with self._lock:
            if hosted.holder is Holder.GONE or (hosted.holder is Holder.THREAD and not by_its_thread):
                return False
            self.active -= hosted.holder in (Holder.THREAD, Holder.QUEUED)
            hosted.holder = Holder.GONE
            hosted.runner = None  # it refers back, so that only the garbage collector would free its conversation
            if self._hosted.get(hosted.agent.id) is hosted:
                del self._hosted[hosted.agent.id]
            if not self._hosted:
                self.idle_since = time.monotonic()
            return True
