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


class InterruptedAgents(NamedTuple):
    """The result of ``interrupt_until_rest``."""

    interrupted: Sequence[Ref]
    """Each agent once, in the order in which they were interrupted."""
    running: Sequence[AgentView]
    """The agents that were still running when the time was up."""


def interrupt_until_rest(
    database: Database, look: Callable[[], Iterable[AgentView]], pause: Callable[[Sequence[AgentId]], object]
) -> InterruptedAgents:
    """Interrupt all agents that ``look`` returns, the deepest first, until none of them is working or 8 s have passed.

    ``look`` is called once per round, ``pause`` between two rounds, with the agents that were working.
    """
    deadline = time.monotonic() + _SETTLE
    interrupted: dict[AgentId, Ref] = {}
    while running := [view for view in look() if view.is_working]:
        for view in sorted(running, key=lambda view: -view.depth):
            if database.run(agents.interrupt, view.id, idempotent=True):
                interrupted[view.id] = Ref(view.id, view.name)
        if time.monotonic() >= deadline:
            break
        pause([view.id for view in running])
    return InterruptedAgents(list(interrupted.values()), running)
