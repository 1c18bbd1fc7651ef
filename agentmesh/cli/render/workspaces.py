"""Workspaces as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from agentmesh.app.trees import shortened
from agentmesh.cli.render.screen import Column, Grid, cell, print_block
from agentmesh.domain.ids import short
from agentmesh.domain.text import one_line, visible

if TYPE_CHECKING:
    from rich.text import Text

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
    rows: Iterable[Sequence[str | Text]] = (
        [
            short(one.id),
            str(one.kind),
            cell(str(one.state), _STYLES.get(one.state, "")),
            cell(_names(one.agents)),
            cell(str(conflicts.get(one.id) or ""), "yellow"),
            str(one.snapshots or ""),
            cell(visible(shortened(one.path)) if one.path else ""),
        ]
        for one in shown
    )
    print_block(Grid(_COLUMNS, rows))


def _names(agents: Sequence[str]) -> str:
    more = len(agents) - _NAMED
    named = ", ".join(one_line(name, 40) for name in agents[:_NAMED])
    return f"{named} +{more}" if more > 0 else named
