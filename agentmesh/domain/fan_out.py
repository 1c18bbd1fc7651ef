"""Many agents that one step would start: what a person is told before they do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from agentmesh.domain.figures import count, money, plural


class Start(NamedTuple):
    """The agents that one call would start."""

    agents: int
    model: str | None = None
    """``provider/model``; None: the model of the agent that makes the call."""
    bytes: int = 0
    """Bytes of each one's prompt, besides the rows that it inherits."""
    inherits: bool = False
    """Whether each begins with the conversation of the agent that makes the call."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the first model calls of agents reserve at most, and how much room the budget has."""

    tokens: int
    usd: Decimal | None
    """None: a price is not known."""
    max_tokens: int | None
    """The cap with the least room; None without a cap."""
    left_tokens: int | None
    max_usd: Decimal | None
    left_usd: Decimal | None


def words(agents: int, models: Sequence[str], estimate: Estimate) -> str:
    """Return ``starts 20 agents on MODEL, reserves up to $3.10 of $10.00 ($6.90 left)``."""
    return f"starts {plural(agents, 'agent')} on {', '.join(models)}, reserves up to {_amount(estimate)}"


def wish(tool: str, agents: int | None) -> str:
    """Return the action that a person must allow: ``use bash``, ``start 20 agents``."""
    return f"use {tool}" if agents is None else f"start {plural(agents, 'agent')}"


def answered(name: str, agents: int, decision: str) -> str:
    """Return the effect of a person's answer to the question of an agent, as one or two sentences."""
    if decision == "no":
        return f"Refused to let {name} start {plural(agents, 'agent')}."
    more = " Agents of this session start others without a question from now on." if decision == "always" else ""
    return f"{name} starts {plural(agents, 'agent')}.{more}"


def _amount(estimate: Estimate) -> str:
    if estimate.usd is not None:
        asked = money(estimate.usd)
        if estimate.max_usd is None or estimate.left_usd is None:
            return asked
        return f"{asked} of {money(estimate.max_usd)} ({money(max(estimate.left_usd, Decimal()))} left)"
    asked = f"{count(estimate.tokens)} tokens"
    if estimate.max_tokens is not None and estimate.left_tokens is not None:
        asked += f" of {count(estimate.max_tokens)} ({count(max(estimate.left_tokens, 0))} left)"
    return f"{asked}; the price is not known"
