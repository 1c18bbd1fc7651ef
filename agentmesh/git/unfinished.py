"""The note of a way back that is under way: from before its first file is written until its row is stored.

If the note is there and nobody holds the workspace's lock, the process died. ``Store`` takes back what was written.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Final, NamedTuple

from agentmesh.domain import jsontext
from agentmesh.domain.log import logger

LOG = logger(__name__)
NOTE: Final = "unfinished.json"
_REF: Final = re.compile(r"refs/agentmesh(/[\w-]+)+", re.ASCII)
_TREE: Final = re.compile(r"[0-9a-f]{40}")
"""A repository whose objects have longer names, by SHA-256, is refused."""


class Unfinished(NamedTuple):
    """Which tree was being written over which, and the ref that the row of it names."""

    ref: str
    tree: str
    expected: str


def write(folder: Path, what: Unfinished) -> None:
    """Note it in the workspace's folder, whose lock is held."""
    new = folder / f"{NOTE}.new"
    with new.open("w") as file:
        json.dump(what, file)
        file.flush()
        os.fsync(file.fileno())  # a power cut must not leave an empty note while the files are already written
    new.replace(folder / NOTE)


def read(folder: Path) -> Unfinished | None:
    """Return what is noted; None if nothing is. Remove a note that cannot be read: nobody can follow it."""
    try:
        data = (folder / NOTE).read_bytes()
    except FileNotFoundError:
        return None
    found = _parsed(data)
    if found is None:
        LOG.warning("the note %s of an undo or redo that was not finished cannot be read: removed", folder / NOTE)
        remove(folder)
    return found


def _parsed(data: bytes) -> Unfinished | None:
    try:
        noted = jsontext.parse(data)
    except ValueError:
        return None
    match noted:
        case [str(ref), str(tree), str(expected)]:
            is_ours = _REF.fullmatch(ref) and _TREE.fullmatch(tree) and _TREE.fullmatch(expected)
            return Unfinished(ref, tree, expected) if is_ours else None
    return None


def remove(folder: Path) -> None:
    """Remove the note."""
    (folder / NOTE).unlink(missing_ok=True)
