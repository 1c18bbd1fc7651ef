"""The board as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.text import Text

from agentmesh.cli.render.figures import activity, state, style
from agentmesh.cli.render.screen import Column, Grid, cell, print_block
from agentmesh.domain.attention import Need
from agentmesh.domain.figures import count, money
from agentmesh.domain.ids import short

if TYPE_CHECKING:
    from agentmesh.domain.rows import AgentView
    from agentmesh.store.board import Detail

_COLUMNS = (
    Column("AGENT"),
    Column("NAME", least=12, keeps_end=True),
    Column("STATE"),
    Column("SINCE", right=True, spare=1),
    Column("DOES", least=16),
    Column("CALLS", right=True, spare=5),
    Column("TOKENS", right=True, spare=4),
    Column("COST", right=True, spare=3),
    Column("CONTEXT LEFT", right=True, spare=6),
    Column("UNREAD", right=True, spare=7),
)
_CHANGED = Column("CHANGED", right=True, spare=2)
_CONFLICTS = Column("CONFLICTS", right=True, spare=1)


class BoardLine(NamedTuple):
    """An agent on the board."""

    agent: AgentView
    need: Need
    detail: Detail | None
    context_left: float | None
    """The share of the model's window that is free; None if that is not known."""
    session: str = ""
    """The title of its session, on a board of all."""
    database: str = ""
    """The name of its database, if there are several."""

    @property
    def conflicts(self) -> int:
        """How many files of its own tree conflict with another agent's."""
        return self.detail.conflicts if self.detail else 0


def print_board(lines: Sequence[BoardLine]) -> None:
    """Print agents, one a line; with the session of each if there are several."""
    several = any(line.session for line in lines)
    has_databases = any(line.database for line in lines)
    has_changes = any(line.agent.changed for line in lines)
    has_conflicts = any(line.conflicts for line in lines)
    columns = [
        *_COLUMNS,
        *([_CHANGED] if has_changes else []),
        *([_CONFLICTS] if has_conflicts else []),
        *([Column("SESSION", least=8, spare=2)] if several else []),
        *([Column("DATABASE", spare=2)] if has_databases else []),
    ]
    rows = [
        [
            *_cells(line),
            *([line.agent.changed] if has_changes else []),
            *([Text(str(line.conflicts or ""), "yellow")] if has_conflicts else []),
            *([cell(line.session)] if several else []),
            *([line.database] if has_databases else []),
        ]
        for line in lines
    ]
    print_block(Grid(columns, rows))


def _cells(line: BoardLine) -> list[str | Text]:
    agent, detail = line.agent, line.detail
    asks = line.need is Need.ASKS
    said = detail.said.strip().rpartition("\n")[2] if detail and not asks else ""
    does = [part for part in (activity(agent).replace("tool: ", "runs ", 1), said) if part]
    return [
        short(agent.id),
        agent.name,
        Text("! asks", "yellow") if asks else Text(state(agent), style(agent)),
        _age(detail.since) if detail else "",
        cell(" · ".join(does), width=200),
        str(detail.model_calls) if detail else "",
        count(agent.tokens),
        money(agent.cost_usd),
        f"{line.context_left:.0%}" if line.context_left is not None else "",
        str(agent.unread) if agent.unread else "",
    ]


def _age(seconds: float) -> str:
    """Return ``42 s``, ``3 min``, ``2 h``, ``4 days``."""
    for unit, size in (("days", 86_400 * 2), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / (86_400 if unit == 'days' else size):.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
