"""Limits as a table."""

from __future__ import annotations

from collections.abc import Sequence

from agentmesh.cli.render.screen import Column, Grid, print_block
from agentmesh.domain.limits import WHAT, Limit, option_of

_LIMITS = (Column("LIMIT", least=12), Column("USED", right=True), Column("AT MOST", right=True), Column("OPTION"))


def print_limits(limits: Sequence[Limit]) -> None:
    """Print limits, one a line."""
    print_block(Grid(_LIMITS, [[WHAT[one.name], *one.amounts, option_of(one.name)] for one in limits]))
