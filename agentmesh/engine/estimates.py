"""Estimate the budget that a step reserves if it starts agents, in words for a person."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from agentmesh.domain import fan_out
from agentmesh.domain.errors import AgentmeshError
from agentmesh.domain.fan_out import Start
from agentmesh.domain.rows import Agent
from agentmesh.engine.budgeting import wanted
from agentmesh.engine.conversation import BYTES_PER_TOKEN, Conversation
from agentmesh.llm.port import ChatModel
from agentmesh.store import budgets
from agentmesh.store.tx import Database


def words(
    database: Database, model: ChatModel, agent: Agent, conversation: Conversation, starts: Sequence[Start]
) -> str:
    """Return the words about these agents for a person: their models, and the budget that their first calls reserve."""
    named = [start.model or agent.model for start in starts]
    planned = [
        _planned(model, name, start, conversation.bytes if start.inherits else conversation.sizes[0])
        for name, start in zip(named, starts, strict=True)
    ]
    estimate = database.run(budgets.fan_out_estimate, agent.id, planned, idempotent=True)
    return fan_out.words(sum(start.agents for start in starts), sorted(set(named)), estimate)


def _planned(model: ChatModel, name: str, start: Start, inherited: int) -> dict[str, Any]:
    """Return the first call of each of these agents, as the database estimates it."""
    sent = inherited + start.bytes
    prices, address = None, ""
    with suppress(AgentmeshError):  # no such provider: the call itself reports it
        prices, address = model.token_prices(name, sent // BYTES_PER_TOKEN), model.address(name)
    return {
        "model": name,
        "address": address,
        "agents": start.agents,
        "bytes": sent,
        "answer": wanted(model, name),
        "input_usd": prices.input_usd if prices else None,
        "output_usd": prices.output_usd if prices else None,
    }
