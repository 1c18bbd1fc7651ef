"""Carries out /budget and /cost."""

from __future__ import annotations

from decimal import Decimal

from agentmesh.domain.budgets import Budget, CostLine, Unit, parse_words, remark_on, total, unpriced
from agentmesh.domain.figures import count, money
from agentmesh.domain.rows import Ref
from agentmesh.store import budgets
from agentmesh.store.reader import QueryResult
from agentmesh.tui.commands.calls import Done
from agentmesh.tui.commands.context import CommandContext


def budget(ctx: CommandContext, *words: str) -> Done:
    """Show budgets, or cap the session or an agent with everything below it."""
    who, cap = parse_words(" ".join(words).split())
    ref = ctx.agent(who) if who is not None else None
    agent = ref.id if ref else None
    if cap is not None:
        ctx.run_idempotent(budgets.set_budget, ctx.session.id, cap, agent)
    found = ctx.run_idempotent(budgets.view, ctx.session.id, agent)
    if cap is not None or (ref and not found):
        return Done(" ".join(filter(None, [_sentence(ref, found[0] if found else None), remark_on(found)])))
    columns = ["budget of", "unit", "used", "reserved", "cap", "left"]
    return Done(remark_on(found), table=QueryResult(columns, [], [row for one in found for row in _rows(one)]))


def cost(ctx: CommandContext) -> Done:
    """Show what the session's model calls used, by agent."""
    lines = ctx.run_idempotent(budgets.costs, ctx.session.id, "agent")
    whole = total(lines)
    columns = ["agent", "model calls", "tokens", "input", "cached", "output", "cost"]
    return Done(
        unpriced(whole.unpriced_calls), table=QueryResult(columns, [], [_cost(line) for line in [*lines, whole]])
    )


def _sentence(ref: Ref | None, budget: Budget | None) -> str:
    """Return what a budget is now, in one line."""
    subject = f"{ref.name} and all below it" if ref else "The session"
    caps = [line for line in budget.lines() if line.cap is not None] if budget else []
    if not caps:
        return (
            f"{ref.name} has no budget of its own; the session's holds for it too."
            if ref
            else "The session has no budget."
        )
    parts = [
        f"{_amount(line.unit, line.cap)} ({_amount(line.unit, line.used)} used)"
        for line in caps
        if line.cap is not None
    ]
    return f"{subject} may use {' and '.join(parts)}."


def _rows(budget: Budget) -> list[tuple[str | None, ...]]:
    return [
        (
            budget.name or "the session",
            line.unit,
            _amount(line.unit, line.used),
            _amount(line.unit, line.reserved),
            "none" if line.cap is None else _amount(line.unit, line.cap),
            line.left,
        )
        for line in budget.lines()
    ]


def _cost(line: CostLine) -> tuple[str | None, ...]:
    tokens = (line.tokens, line.input_tokens, line.cached_tokens, line.output_tokens)
    some = " + ?" if line.unpriced_calls and line.cost_usd is not None else ""
    return (line.what, str(line.calls), *map(count, tokens), money(line.cost_usd) + some)


def _amount(unit: Unit, amount: Decimal) -> str:
    return money(amount) if unit == Unit.USD else f"{count(int(amount))} tokens"
