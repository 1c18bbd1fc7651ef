"""Files that changed, one per line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from agentmesh.cli.render.screen import Column, Grid, cell, print_block
from agentmesh.domain.text import storable, visible

if TYPE_CHECKING:
    from agentmesh.git.facts import FileChange

_STYLES = {"added": "green", "changed": "", "removed": "red"}


def print_files(files: Sequence[FileChange]) -> None:
    """Print files with what happened to them and how many lines."""
    columns = (Column(), Column(least=20), Column(right=True), Column(right=True))
    print_block(Grid(columns, [_cells(one) for one in files]))


def print_patch(text: str) -> None:
    """Print a diff as Git writes it, byte by byte; on a terminal, hidden characters are made visible."""
    if sys.stdout.isatty():
        print("\n".join(visible(line) for line in storable(text).removesuffix("\n").split("\n")))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
        sys.stdout.buffer.flush()


def _cells(one: FileChange) -> list[str | Text]:
    lines = ("binary", "") if one.binary else (f"+{one.added:,}", f"−{one.removed:,}")
    return [cell(one.status, _STYLES[one.status]), cell(visible(one.path)), *lines]


def files_data(files: Sequence[FileChange]) -> list[dict[str, Any]]:
    """Return files as ``--json`` prints them."""
    return [
        {
            "path": storable(one.path),
            "status": one.status,
            "added": one.added,
            "removed": one.removed,
            "binary": one.binary,
        }
        for one in files
    ]
