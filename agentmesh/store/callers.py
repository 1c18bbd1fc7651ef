"""The lease by which a worker acts for an agent, as the SQL type ``agentmesh.caller``."""

from __future__ import annotations

from dataclasses import dataclass

from agentmesh.domain.ids import AgentId, WorkerId


@dataclass(frozen=True, slots=True)
class Lease:
    """A worker's right to run an agent, and the tool call that it is answering, if any."""

    agent_id: AgentId
    worker_id: WorkerId
    epoch: int
    seq: int | None = None
    ordinal: int | None = None
    note: str | None = None
    """What the model should know about how its call was read; goes into the result."""

    def call(self, seq: int, ordinal: int | None = None, note: str | None = None) -> Lease:
        """Return the same lease, answering this call (or, without ordinal, calls of this step)."""
        return Lease(self.agent_id, self.worker_id, self.epoch, seq, ordinal, note)


def caller(lease: Lease | None) -> dict[str, int | str | None]:
    """Return the parameters worker, epoch, seq, ordinal and note of a statement that takes a caller."""
    if lease is None:
        return {"worker": None, "epoch": None, "seq": None, "ordinal": None, "note": None}
    return {
        "worker": lease.worker_id,
        "epoch": lease.epoch,
        "seq": lease.seq,
        "ordinal": lease.ordinal,
        "note": lease.note,
    }
