"""Budgets and costs as tables."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from agentmesh.cli.render.screen import Column, Grid, print_block
from agentmesh.domain.budgets import Budget, CostLine, Unit, total
from agentmesh.domain.figures import count, money
from agentmesh.domain.ids import short

_BUDGET = (
    Column("BUDGET OF", least=12),
    Column("UNIT"),
    Column("USED", right=True),
    Column("RESERVED", right=True, spare=1),
    Column("CAP", right=True),
    Column("LEFT", right=True),
)


def print_budgets(budgets: Sequence[Budget]) -> None:
    """Print budgets, one line per unit."""
    rows = [
        [
            budget.name or f"session {short(budget.session_id)}",
            line.unit,
            _amount(line.unit, line.used),
            _amount(line.unit, line.reserved),
            "none" if line.cap is None else _amount(line.unit, line.cap),
            line.left,
        ]
        for budget in budgets
        for line in budget.lines()
    ]
    print_block(Grid(_BUDGET, rows))


def print_costs(by: str, lines: Sequence[CostLine]) -> None:
    """Print costs, and their sum if there is more than one line."""
    columns = (
        Column(by.upper(), least=12),
        Column("MODEL CALLS", right=True, spare=1),
        Column("TOKENS", right=True),
        Column("INPUT", right=True, spare=3),
        Column("CACHED", right=True, spare=4),
        Column("OUTPUT", right=True, spare=2),
        Column("COST", right=True),
    )
    shown = [*lines, total(lines)] if len(lines) > 1 else lines
    print_block(Grid(columns, (_cost(line) for line in shown)))


def _cost(line: CostLine) -> list[str]:
    tokens = (line.tokens, line.input_tokens, line.cached_tokens, line.output_tokens)
    some = " + ?" if line.unpriced_calls and line.cost_usd is not None else ""
    return [line.what, str(line.calls), *map(count, tokens), money(line.cost_usd) + some]


def _amount(unit: Unit, amount: Decimal) -> str:
    return money(amount) if unit == Unit.USD else count(int(amount))
