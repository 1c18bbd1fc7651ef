"""Which prefixes of conversations model servers have read, and which agent is the first to send one."""

from __future__ import annotations

from psycopg import Connection

from agentmesh.domain.ids import AgentId
from agentmesh.sql import statement


def hold_prefix(
    conn: Connection, key: str, agent: AgentId, model: str, after: int, seconds: float, lasts: float
) -> float | None:
    """Return None if the prefix is warm, 0 if the agent goes first, otherwise the seconds that it may still wait.

    ``key`` names the prefix and the model. ``after``: the newest row of the parent's in it. ``seconds``: how long the
    others wait if this agent goes first. ``lasts``: seconds that a server keeps what it has read.
    """
    values = {"key": key, "agent": agent, "model": model, "after": after, "seconds": seconds, "lasts": lasts}
    row = conn.execute(statement("prefixes.hold"), values).fetchone()
    return None if row is None or row[0] is None else float(row[0])


def warm_prefix(conn: Connection, key: str, agent: AgentId, *, is_warm: bool) -> None:
    """Let the others go on: the first token of the agent that went first has come, or its call has ended without."""
    conn.execute(statement("prefixes.warm"), {"key": key, "agent": agent, "is_warm": is_warm})
