"""Budgets and costs as tables."""

from __future__ import annotations

from collections.abc import Sequence

from agentmesh.cli.render.screen import Column, Grid, print_block
from agentmesh.domain.budgets import Budget, CostLine, budget_cells, cost_cells, total
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
    rows = [cells for budget in budgets for cells in budget_cells(budget, f"session {short(budget.session_id)}")]
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
    print_block(Grid(columns, map(cost_cells, shown)))
