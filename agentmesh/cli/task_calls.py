"""Find the task call that an agent works for: the call of its own task, or of the nearest sub-agent above it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import AgentView
from agentmesh.store import tasks

if TYPE_CHECKING:
    from agentmesh.store.tasks import TaskCall
    from agentmesh.store.tx import Database


@dataclass(frozen=True, slots=True)
class TaskCalls:
    """The task calls that one agent works, or worked, for; oldest first."""

    agent: AgentId
    calls: Sequence[TaskCall] = ()

    def at(self, seq: int | None = None) -> str | None:
        """Return the id of the call that a row belongs to, or None; without a row, of the agent's current work."""
        begun = [call for call in self.calls if seq is None or call.child != self.agent or call.from_seq < seq]
        return begun[-1].call_id if begun else None


def sub_agents(agents: Sequence[AgentView]) -> frozenset[AgentId]:
    """Return the sub-agents of tasks and all agents below them; ``agents`` lists parents before their children."""
    found: set[AgentId] = set()
    for agent in agents:
        if agent.clean or agent.parent_id in found:
            found.add(agent.id)
    return frozenset(found)


def task_calls_of(database: Database, agent: AgentId) -> TaskCalls:
    """Return the task calls that an agent works for."""
    return TaskCalls(agent, database.run(tasks.calls, agent, idempotent=True))
