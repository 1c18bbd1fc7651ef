"""The note of a way back that is under way: from before its first file is written until its row is stored.

If the note is there and nobody holds the workspace's lock, the process died. ``Store`` takes back what was written.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, NamedTuple

from agentmesh.domain import jsontext

NOTE: Final = "unfinished.json"


class Unfinished(NamedTuple):
    """Which tree was being written over which, and the ref that the row of it names."""

    ref: str
    tree: str
    expected: str


def write(folder: Path, what: Unfinished) -> None:
    """Note it in the workspace's folder, whose lock is held."""
    new = folder / f"{NOTE}.new"
    new.write_text(json.dumps(what))
    new.replace(folder / NOTE)


def read(folder: Path) -> Unfinished | None:
    """Return what is noted; None if nothing is. A note that cannot be read is lost."""
    try:
        return Unfinished(*map(str, jsontext.parse((folder / NOTE).read_bytes())))
    except (FileNotFoundError, TypeError, ValueError):
        return None


def remove(folder: Path) -> None:
    """Remove the note."""
    (folder / NOTE).unlink(missing_ok=True)
