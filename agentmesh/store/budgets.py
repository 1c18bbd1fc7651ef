"""Budgets: caps, the use so far, and setting caps. (``steps.begin_step`` makes reservations.)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal

from psycopg import Connection
from psycopg.rows import class_row

from agentmesh.domain.budgets import Budget, Cap, CostLine
from agentmesh.domain.fan_out import Estimate
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.sql import statement
from agentmesh.store.call import scalar
from agentmesh.store.jsonb import jsonb


def view(conn: Connection, session: SessionId, agent: AgentId | None = None) -> list[Budget]:
    """Return the budgets of the session, its own first, and of its capped agents; for ``agent``, only its own."""
    with conn.cursor(row_factory=class_row(Budget)) as cursor:
        return cursor.execute(statement("budgets.view"), {"session": session, "agent": agent}).fetchall()


def token_cap(conn: Connection, agent: AgentId) -> int | None:
    """Return the lowest cap on tokens that holds for the agent: its own, an ancestor's or the session's."""
    row = conn.execute(statement("budgets.token_cap"), {"agent": agent}).fetchone()
    return row[0] if row else None


def set_budget(conn: Connection, session: SessionId, cap: Cap, agent: AgentId | None = None) -> None:
    """Cap what the session, or the agent and all below it, may use; the cap holds from the next model call on."""
    values = {"session": session, "unit": cap.unit, "amount": cap.amount, "agent": agent}
    conn.execute(statement("budgets.set"), values)


def fan_out_estimate(conn: Connection, agent: AgentId, starts: Sequence[Mapping[str, Any]]) -> Estimate:
    """Return the most that the first model calls of new agents reserve, which this agent is about to start.

    ``starts``: for each kind of them ``model``, ``agents``, the ``bytes`` of a request, the tokens of its ``answer``,
    and listed prices.
    """
    values = {"agent": agent, "starts": jsonb(list(starts))}
    found = scalar(conn, statement("budgets.fan_out_estimate"), values, dict)
    usd, most, left = (
        None if found[key] is None else Decimal(str(found[key])) for key in ("usd", "max_usd", "left_usd")
    )
    return Estimate(int(found["tokens"]), usd, found["max_tokens"], found["left_tokens"], most, left)


def costs(conn: Connection, session: SessionId, by: Literal["agent", "model", "day"]) -> list[CostLine]:
    """Return the use and cost of the session's model calls, by agent, model or day (in UTC)."""
    with conn.cursor(row_factory=class_row(CostLine)) as cursor:
        return cursor.execute(statement("budgets.costs"), {"session": session, "by": by}).fetchall()
