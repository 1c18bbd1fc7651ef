"""What agents need of a person: the order of the board."""

from __future__ import annotations

from enum import Enum

from agentmesh.domain.states import AgentStatus

_BAD_ENDS = frozenset({"failed", "out of budget"})


class Need(Enum):
    """How urgently an agent needs a person who looks after many; lists have agents in this order."""

    ASKS = "asks"
    """It cannot go on without a person: a request is open, or agents woke it too often."""
    FAILED = "failed"
    """Its last turn failed or reached a budget."""
    DONE = "done"
    """A person asked for its last turn, and has not looked at the end of it."""
    RUNNING = "running"
    WAITING = "waiting"
    """It runs, but does nothing itself: it waits for others or for a worker."""
    IDLE = "idle"
    DEAD = "dead"

    @classmethod
    def of(cls, status: AgentStatus, activity: str, *, unseen: bool, asks: bool) -> Need:
        """Return the need of an agent: status, activity and unseen as in ``v_agents``; asks: it has an open request."""
        if status == AgentStatus.DEAD:
            return cls.DEAD
        if asks or activity == "holding mail":
            return cls.ASKS
        if status == AgentStatus.RUNNING:
            return cls.WAITING if activity in ("waiting", "queued") else cls.RUNNING
        if activity in _BAD_ENDS:
            return cls.FAILED
        return cls.DONE if unseen else cls.IDLE

    @property
    def rank(self) -> int:
        """The place in the order: 0 comes first."""
        return _RANKS[self]


_RANKS = {need: rank for rank, need in enumerate(Need)}
