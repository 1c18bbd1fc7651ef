"""Booking what a model call used, also where its answer is not kept: it is paid all the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from agentmesh.domain.errors import Fenced
from agentmesh.domain.rows import Agent
from agentmesh.store import steps
from agentmesh.store.tx import Database

Result = TypeVar("Result")


def end_call(
    database: Database, agent: Agent, usage: Mapping[str, Any] | None, commit: Callable[..., Result], *args: Any
) -> Result:
    """Run the commit that ends a model call and books its ``usage``.

    Where another worker owns the agent by now, the commit is refused (Fenced) and the usage is booked alone.
    """
    try:
        return database.run(commit, *args)
    except Fenced:
        if usage is not None:
            book_lost(database, agent, usage)
        raise


def book_lost(database: Database, agent: Agent, usage: Mapping[str, Any]) -> None:
    """Book a model call whose answer is not kept, in the turn in which it was made; the agent may be dead."""
    database.run(steps.book_call, agent.id, {**usage, "turn": agent.turn})
