"""Which agents use the slots of a small model server, and which wait for one."""

from __future__ import annotations

from psycopg import Connection

from agentmesh.domain.ids import AgentId
from agentmesh.sql import statement


def take_slot(
    conn: Connection, agent: AgentId, model: str, key: str, tokens: int, slots: int, patience: float
) -> float | None:
    """Return None if the agent may call this model now, otherwise the seconds until it may look again.

    ``key`` names the prefix that it shares with others, of so many ``tokens``. ``patience``: seconds that it waits for
    each of those others at most.
    """
    values = {"agent": agent, "model": model, "key": key, "tokens": tokens, "slots": slots, "patience": patience}
    row = conn.execute(statement("slots.take"), values).fetchone()
    return None if row is None or row[0] is None else float(row[0])


def leave_slot(conn: Connection, agent: AgentId) -> None:
    """Say that the agent's call is over, or that it no longer wants one."""
    conn.execute(statement("slots.leave"), {"agent": agent})
