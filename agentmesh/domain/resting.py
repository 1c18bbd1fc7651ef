"""Sub-agents whose task is over: they stay, can be read and continued, and are hidden from lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import AgentStatus

if TYPE_CHECKING:
    from agentmesh.domain.rows import AgentView


def resting(agents: Sequence[AgentView]) -> frozenset[AgentId]:
    """Return the sub-agents of tasks that do not work and have no visible agent below them.

    ``agents`` are those of one session, parents before their children. Reaped agents are never visible.
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
