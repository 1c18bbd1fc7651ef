"""Workspaces as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from rich.text import Text

from agentmesh.app.trees import shortened
from agentmesh.cli.render.screen import Column, Grid, cell, print_block
from agentmesh.domain.ids import short
from agentmesh.domain.text import one_line, visible

if TYPE_CHECKING:
    from agentmesh.domain.workspaces import WorkspaceView

_COLUMNS = (
    Column("WORKSPACE"),
    Column("KIND"),
    Column("STATE"),
    Column("AGENTS", least=8, spare=1),
    Column("CONFLICTS", right=True, spare=2),
    Column("SNAPSHOTS", right=True, spare=3),
    Column("DIRECTORY", least=16),
)
_NAMED = 3
"""Agents that a line names."""
_STYLES = {"failed": "red", "planned": "yellow", "removing": "yellow", "removed": "dim"}


def print_workspaces(shown: Sequence[WorkspaceView], conflicts: Mapping[UUID, int]) -> None:
    """Print workspaces, one per line; ``conflicts`` counts the files of each that conflict."""
    print_block(Grid(_COLUMNS, [_cells(one, conflicts.get(one.id, 0)) for one in shown]))


def _cells(one: WorkspaceView, conflicts: int) -> list[str | Text]:
    return [
        short(one.id),
        str(one.kind),
        cell(f"{one.state}, merged" if one.merged else str(one.state), _STYLES.get(one.state, "")),
        cell(_names(one.agents)),
        cell(str(conflicts or ""), "yellow"),
        str(one.snapshots or ""),
        cell(visible(shortened(one.path)) if one.path else ""),
    ]


def _names(agents: Sequence[str]) -> str:
    more = len(agents) - _NAMED
    named = ", ".join(one_line(name, 40) for name in agents[:_NAMED])
    return f"{named} +{more}" if more > 0 else named
