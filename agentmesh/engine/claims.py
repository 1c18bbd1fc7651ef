"""Claiming agents for a worker's crew: when the worker hears of work, and when a slot becomes free.

One thread claims. Any thread may call the other methods: each says that something may be claimed now.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence

from agentmesh.domain.errors import AgentmeshError, Fenced
from agentmesh.domain.ids import WorkerId
from agentmesh.domain.log import logger
from agentmesh.domain.rows import Agent
from agentmesh.engine.crew import Crew
from agentmesh.store import workers
from agentmesh.store.tx import Database

LOG = logger(__name__)

_AGAIN = 1.0
"""Seconds before a claim that failed is tried again."""


class Claims:
    """Claims until nothing is left, or no slot is free."""

    def __init__(
        self,
        database: Database,
        crew: Crew,
        slots: int,
        me: Callable[[], WorkerId],
        host: Callable[[Sequence[Agent]], None],
        on_fenced: Callable[[], None],
    ) -> None:
        """``host`` takes claimed agents in. ``on_fenced``: other workers took this one for dead."""
        self._database = database
        self._crew = crew
        self._slots = slots
        self._me = me
        self._host = host
        self._on_fenced = on_fenced
        self._wanted = threading.Event()
        self._stopping = threading.Event()
        self._more_are_queued = True
        """Whether the last claim may have left agents for lack of slots; only then does a free slot need a claim."""
        self._waits_are_queued = True
        """Whether agents inside a wait may be queued: they need no slot."""
        self._in_doubt = False
        """Whether the worker may own agents that it does not know: the answer of a claim was lost."""

    def stop(self) -> None:
        """Let ``run`` return."""
        self._stopping.set()
        self._wanted.set()

    def heard_of_work(self, *, in_doubt: bool = False) -> None:
        """Claim all that there is; if ``in_doubt``, first take in agents that the worker owns and does not know."""
        self._in_doubt |= in_doubt
        self._waits_are_queued = True
        self._wanted.set()

    def slot_is_free(self) -> None:
        """Claim for a free slot, if the last claim left agents behind; make offers that are due."""
        if self._more_are_queued or self._crew.offers.are_due:
            self._wanted.set()

    def offers_are_due(self) -> None:
        """Offer agents to other workers, and claim."""
        self._wanted.set()

    def run(self) -> None:
        """Claim whenever something may be claimed, until stopped."""
        while True:
            self._wanted.wait()
            if self._stopping.is_set():
                return
            self._wanted.clear()
            try:
                if self._in_doubt:
                    self._in_doubt = False
                    self._host(self._database.run(workers.owned, self._me(), idempotent=True))
                self._claim_all()
            except Fenced:
                self._on_fenced()
                self._stopping.wait(_AGAIN)
            except Exception as error:
                LOG.warning("could not claim agents: %s", error, exc_info=not isinstance(error, AgentmeshError))
                self._stopping.wait(_AGAIN)
                self.heard_of_work(in_doubt=True)

    def _claim_all(self) -> None:
        """Claim until nothing is left or no slot is free; skip agents that a sender holds, and try again at once.

        Where slots are too few, other workers are asked first.
        """
        if self._crew.offers.are_due:
            self._crew.offers.make()
        if waits := self._waits_are_queued:
            self._waits_are_queued = False  # before the claim: work that is heard of from now on needs another one
        while not self._stopping.is_set():
            # Before slots are counted: one that becomes free meanwhile needs another claim.
            self._more_are_queued = True
            slots = max(self._slots - self._crew.active, 0)
            claimed = self._database.run(workers.claim, self._me(), slots, waits=waits)
            if claimed:
                self._host(claimed)
            elif not slots:
                return
            elif not self._database.run(workers.claimable, self._me(), slots, idempotent=True):
                self._more_are_queued = False  # the worker hears of agents that are queued from now on
                return
            else:
                waits = True
                self._stopping.wait(random.uniform(0.002, 0.01))  # noqa: S311  spreads two claimers, keeps no secret
