"""Agents that lists fold away: sub-agents whose task is over, and silent ones. They stay, and can be read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

from agentmesh.domain.attention import Need
from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import AgentStatus

if TYPE_CHECKING:
    from agentmesh.domain.rows import AgentView


_OF_A_PERSON: Final = (Need.ASKS, Need.FAILED, Need.DONE)


def resting(agents: Sequence[AgentView]) -> frozenset[AgentId]:
    """Return the sub-agents of tasks that do not work and have no visible agent below them.

    ``agents`` are all agents of one session, parents before their children. Reaped agents are never visible.
    """
    found: set[AgentId] = set()
    needed: set[AgentId] = set()
    """Agents with a visible agent below them."""
    for agent in reversed(agents):
        is_seen = agent.reaped_at is None and not (agent.clean and agent.status != AgentStatus.RUNNING)
        if agent.clean and not is_seen and agent.id not in needed:
            found.add(agent.id)
        if (is_seen or agent.id in needed) and agent.parent_id is not None:
            needed.add(agent.parent_id)
    return frozenset(found)


def silent(agents: Sequence[AgentView], asking: Collection[AgentId] = ()) -> frozenset[AgentId]:
    """Return the silent agents that lists fold away: all but those that need a person, and those above them.

    ``agents`` are all agents of one session, parents before their children; ``asking`` have open requests.
    """
    if not any(agent.silent for agent in agents):
        return frozenset()
    found: set[AgentId] = set()
    needed: set[AgentId] = set()
    """Agents that need a person, or have one below them that does."""
    for agent in reversed(agents):
        asks = agent.id in asking or agent.activity == "asking" or agent.activity.startswith("needs approval")
        need = Need.of(agent.status, agent.activity, unseen=agent.unseen, asks=asks)
        if agent.reaped_at is None and need in _OF_A_PERSON:
            needed.add(agent.id)
        if agent.id in needed and agent.parent_id is not None:
            needed.add(agent.parent_id)
        if agent.silent and agent.reaped_at is None and agent.id not in needed:
            found.add(agent.id)
    return frozenset(found)


def is_folded(agent: AgentView, need: Need) -> bool:
    """Whether a list without the tree folds the agent away."""
    return agent.silent and need not in _OF_A_PERSON


def silent_note(folded: int) -> str:
    """Return how many silent agents a list folds away, in words; empty if there are none."""
    return f"+{folded:,} silent" if folded else ""
