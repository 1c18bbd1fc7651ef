"""Offers to other workers: agents that a worker has no thread for, so that none idles after a wait for many.

Agents inside waits stay with their worker and need no thread. But if many waits end at once, all of them need one. What
others can run is then given back: nobody owns it, and the first worker with a free thread claims it.
``agentmesh.give_back`` decides.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from agentmesh.domain.ids import AgentId, WorkerId
from agentmesh.engine.hosts import LeasedAgent, LeasedAgents
from agentmesh.store import workers
from agentmesh.store.tx import Database

_AGAIN = 1.0
"""Seconds until the next offer after one that nobody took."""


class Offers:
    """Offers are made by one thread; any thread may ask whether one is due."""

    def __init__(
        self,
        database: Database,
        hosts: LeasedAgents,
        threads: int,
        me: Callable[[], WorkerId],
        take_back: Callable[[LeasedAgent], None],
        drop: Callable[[LeasedAgent], bool],
    ) -> None:
        """``take_back`` goes on with an agent that nobody took; ``drop`` lets an agent go that was given away."""
        self._database = database
        self._hosts = hosts
        self._threads = threads
        self._me = me
        self._take_back = take_back
        self._drop = drop
        self._next = 0.0

    @property
    def are_due(self) -> bool:
        """Whether agents wait for a thread, and have not just been offered."""
        return self._hosts.active > self._threads and time.monotonic() >= self._next

    def make(self) -> None:
        """Offer agents that there is no thread for; costs a statement, and a few reads if there is no other worker."""
        offered, given = self._hosts.offer(self._threads), set[AgentId]()
        epochs = {hosted.agent.id: hosted.agent.epoch for hosted in offered}
        self._next = time.monotonic() + _AGAIN
        try:
            given = self._database.run(workers.give_back, self._me(), epochs)
        finally:  # if its outcome is unknown, the rows refuse agents that are no longer ours
            for hosted in offered:
                if hosted.agent.id not in given:
                    self._take_back(hosted)
                elif self._drop(hosted):
                    self._next = 0.0
