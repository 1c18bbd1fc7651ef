"""The contents of a context, as a table."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from agentmesh.cli.render.screen import Column, Grid, cell, print_block
from agentmesh.store.context import ContextPart

_COLUMNS = (
    Column("WHAT", least=12),
    Column("MESSAGES", right=True, spare=2),
    Column("BYTES", right=True, spare=1),
    Column("TOKENS", right=True),
    Column("SHARE", right=True),
)


def print_parts(parts: Iterable[ContextPart], whole: int) -> None:
    """Print parts, one per line; shares are of ``whole`` tokens."""
    rows: Iterable[list[str | Text]] = (
        [
            cell(part.name, width=60),
            str(part.rows),
            f"{part.bytes:,}",
            f"{part.tokens:,}",
            f"{100 * part.tokens / max(whole, 1):.1f} %",
        ]
        for part in parts
    )
    print_block(Grid(_COLUMNS, rows))
