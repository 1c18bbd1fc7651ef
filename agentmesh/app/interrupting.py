"""Stop agents until they rest: the end of one may wake another, so one round of interrupts is not enough."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import AgentView, Ref
from agentmesh.store import agents
from agentmesh.store.tx import Database

_SETTLE: Final = 8.0
"""Seconds in which interrupted agents may come to rest."""
_LOOK: Final = 0.1
"""Seconds between two rounds, for a caller without notifications."""


class InterruptedAgents(NamedTuple):
    """The result of ``interrupt_until_rest``."""

    interrupted: Sequence[Ref]
    """Each agent once, in the order in which they were interrupted."""
    running: Sequence[AgentView]
    """The agents that were still running when the time was up."""


def interrupt_until_rest(
    database: Database,
    look: Callable[[], Iterable[AgentView]],
    pause: Callable[[Sequence[AgentId]], object] = lambda _running: time.sleep(_LOOK),
) -> InterruptedAgents:
    """Interrupt all working agents that ``look`` returns until none of them is working or 8 s have passed.

    ``look`` is called once per round, ``pause`` between two rounds, with the agents that were working. Parents come
    before their children, and idle parents are told too: so what the children report in the end wakes none of them.
    """
    deadline = time.monotonic() + _SETTLE
    interrupted: dict[AgentId, Ref] = {}
    while True:
        seen = list(look())
        running = [view for view in seen if view.is_working]
        parents = {view.parent_id for view in running}
        told = [view for view in seen if view.is_working or view.id in parents]
        for view in sorted(told, key=lambda view: view.depth):
            if database.run(agents.interrupt, view.id, idempotent=True):
                interrupted[view.id] = Ref(view.id, view.name)
        if not running or time.monotonic() >= deadline:
            return InterruptedAgents(list(interrupted.values()), running)
        pause([view.id for view in running])
