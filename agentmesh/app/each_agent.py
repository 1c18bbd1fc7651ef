"""Do something to each of several agents in turn: kill, interrupt, retry."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from agentmesh.domain.errors import Refused
from agentmesh.domain.rows import Ref


def to_each(agents: Iterable[Ref], do: Callable[[Ref], Iterable[Ref]]) -> tuple[list[Ref], list[Refused]]:
    """Do it to each agent; return the agents that it was done to, and the refusals. One refusal stops no other."""
    done: list[Ref] = []
    refused = []
    for agent in agents:
        try:
            done += do(agent)
        except Refused as error:
            refused.append(error)
    return done, refused
