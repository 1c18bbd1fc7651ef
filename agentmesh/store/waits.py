"""Waits: begin one and take its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from psycopg import Connection
from psycopg.rows import class_row, scalar_row
from psycopg.types.json import Jsonb

from agentmesh.domain.errors import BadWait
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.rows import Ref, Wait
from agentmesh.domain.states import WaitOutcome
from agentmesh.domain.text import storable
from agentmesh.sql import statement
from agentmesh.store import agents
from agentmesh.store.call import Lease, caller, scalar

_FEW = 100
"""Names that a wait may always list, however few agents there are."""


def targets(
    conn: Connection, session: SessionId, asked: Sequence[str], waiter: AgentId | None = None
) -> list[dict[str, Any]]:
    """Resolve the agents to wait for, in the order asked; an entry may carry its error instead.

    A waiter that asks by itself may call its parent "parent". Raise BadWait for no name, or for more than there are
    agents: each one that is wrong adds an error to the result, which would have no bound.
    """
    if not asked:
        raise BadWait("from_agents is empty", hint="List agents, or leave it out to wait for a message from anyone.")
    if len(asked) > _FEW:
        most = max(_FEW, scalar(conn, statement("waits.agents"), {"session": session}, int))
        if len(asked) > most:
            raise BadWait(
                f"from_agents has {len(asked)} names, the most here is {most}",
                hint="Name each agent of the session once, or leave it out to wait for a message from anyone.",
            )
    return [
        {"agent_id": str(found.id), "id": str(found.id)}
        if isinstance(found, Ref)
        else {"agent_id": storable(who), "error": found.message, "hint": found.hint}
        for who, found in zip(asked, agents.resolve_all(conn, session, asked, waiter), strict=True)
    ]


def wait_begin(
    conn: Connection,
    waiter: AgentId,
    for_whom: Sequence[dict[str, Any]] | None,
    timeout: float,
    lease: Lease | None = None,
) -> dict[str, Any] | None:
    """Begin a wait for these ``targets`` (None: anyone) of ``timeout`` seconds; return the result if it ends at once.

    With a lease it answers the lease's tool call; without one it is a person's wait on an idle agent. Raise BadWait,
    WaitBusy, WaitCircle, AgentBusy, DeadAgent when refused.
    """
    wanted = Jsonb(list(for_whom)) if for_whom is not None else None
    values = {"waiter": waiter, "targets": wanted, "timeout": timeout, **caller(lease)}
    return _result(conn, "waits.begin", values)


def wait_take(
    conn: Connection, waiter: AgentId, final: WaitOutcome | None = None, lease: Lease | None = None
) -> dict[str, Any] | None:
    """Return the result of the agent's wait if it ends now (with ``final``, always); None while it goes on."""
    values = {"waiter": waiter, "final": final, **caller(lease)}
    return _result(conn, "waits.take", values)


def registered(conn: Connection, waiter: AgentId) -> Wait | None:
    """Return the agent's wait, if it is in one."""
    with conn.cursor(row_factory=class_row(Wait)) as cursor:
        return cursor.execute(statement("waits.registered"), {"waiter": waiter}).fetchone()


def still_open(conn: Connection, waiter: AgentId) -> int:
    """Return how many of the awaited agents are still running and have sent nothing."""
    return scalar(conn, statement("waits.still_open"), {"waiter": waiter}, int)


def _result(conn: Connection, name: str, values: Mapping[str, Any]) -> dict[str, Any] | None:
    with conn.cursor(row_factory=scalar_row) as cursor:
        return cast("dict[str, Any] | None", cursor.execute(statement(name), values).fetchone())
