"""Carries out /budget and /cost."""

from __future__ import annotations

from agentmesh.domain.budgets import (
    Budget,
    amount_words,
    budget_cells,
    cost_cells,
    parse_words,
    remark_on,
    total,
    unpriced,
)
from agentmesh.domain.rows import Ref
from agentmesh.store import budgets
from agentmesh.store.reader import QueryResult
from agentmesh.tui.commands.calls import Done
from agentmesh.tui.commands.context import CommandContext

_TOKENS = " tokens"
"""Follows a number of tokens."""


def budget(ctx: CommandContext, *words: str) -> Done:
    """Show budgets, or cap the session or an agent with everything below it."""
    who, cap = parse_words(" ".join(words).split())
    ref = ctx.agent(who) if who is not None else None
    agent = ref.id if ref else None
    if cap is not None:
        ctx.run_idempotent(budgets.set_budget, ctx.session.id, cap, agent)
    found = ctx.run_idempotent(budgets.view, ctx.session.id, agent)
    remark = remark_on(found, ctx.run_idempotent(budgets.token_cap, agent) if agent else None)
    if cap is not None or (ref and not found):
        return Done(" ".join(filter(None, [_sentence(ref, found[0] if found else None), remark])))
    columns = ["budget of", "unit", "used", "reserved", "cap", "left"]
    return Done(
        remark,
        table=QueryResult(columns, [], [row for one in found for row in budget_cells(one, "the session", _TOKENS)]),
    )


def cost(ctx: CommandContext) -> Done:
    """Show what the session's model calls used, by agent."""
    lines = ctx.run_idempotent(budgets.costs, ctx.session.id, "agent")
    whole = total(lines)
    columns = ["agent", "model calls", "tokens", "input", "cached", "output", "cost"]
    return Done(
        unpriced(whole.unpriced_calls), table=QueryResult(columns, [], [cost_cells(line) for line in [*lines, whole]])
    )


def _sentence(ref: Ref | None, budget: Budget | None) -> str:
    """Describe a budget in one line."""
    subject = f"{ref.name} and all below it" if ref else "The session"
    caps = [line for line in budget.lines() if line.cap is not None] if budget else []
    if not caps:
        return (
            f"{ref.name} has no budget of its own; the session's holds for it too."
            if ref
            else "The session has no budget."
        )
    parts = [
        f"{amount_words(line.unit, line.cap, _TOKENS)} ({amount_words(line.unit, line.used, _TOKENS)} used)"
        for line in caps
        if line.cap is not None
    ]
    return f"{subject} may use {' and '.join(parts)}."
