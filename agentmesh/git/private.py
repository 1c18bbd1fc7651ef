"""Files that only some may read. Git's trees know nothing of that, so it is noted beside the workspace's index.

A note is about a path with a content. So a file that was private once, and is public with other content, can be
brought back as both.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, TypeGuard

from agentmesh.domain import jsontext
from agentmesh.git.tree_objects import FILE, PROGRAM, Entry

_FILE: Final = "private.json"
_READERS: Final = 0o044
_KEPT: Final = 100
"""Contents of one path that are remembered."""

Notes = dict[str, dict[str, int]]
"""Permissions by path and by the id of the content."""


def is_begun(view: Path) -> bool:
    """Return whether there are notes, even if they say nothing."""
    return (view / _FILE).exists()


def read(view: Path) -> Notes:
    """Return the notes. Those that cannot be read are lost."""
    try:
        found = jsontext.parse((view / _FILE).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return found if _are_notes(found) else {}


def _are_notes(found: object) -> TypeGuard[Notes]:
    return isinstance(found, dict) and all(
        isinstance(contents, dict) and all(isinstance(mode, int) and 0 <= mode <= 0o777 for mode in contents.values())
        for contents in found.values()
    )


def note(view: Path, top: Path, files: Iterable[tuple[str, Entry]]) -> None:
    """Note which of these files, as they are on disk, fewer may read than a new file."""
    usual = (view / "HEAD").stat().st_mode & _READERS
    notes = read(view)
    is_new = not is_begun(view)
    for path, entry, mode in _on_disk(top, files):
        is_private = bool(usual & ~mode)
        if is_private or path in notes:
            is_new |= _noted(notes, path, entry.id.hex(), mode if is_private else None)
    if is_new:
        _write(view, notes)


def permissions(notes: Notes, path: str, entry: Entry) -> int | None:
    """Return the permissions that a file had with this content; None if all might read it, or nobody knows."""
    return notes.get(path, {}).get(entry.id.hex())


def _on_disk(top: Path, files: Iterable[tuple[str, Entry]]) -> Iterator[tuple[str, Entry, int]]:
    """Yield the files that are there, with their permissions."""
    above = f"{os.fspath(top)}/"
    for path, entry in files:
        if entry.mode in (FILE, PROGRAM):
            try:
                mode = os.lstat(above + path).st_mode
            except OSError:
                continue
            if stat.S_ISREG(mode):
                yield path, entry, mode & 0o777


def _noted(notes: Notes, path: str, name: str, mode: int | None) -> bool:
    """Change the notes about one file; return whether that made a difference."""
    contents = notes.get(path, {})
    if contents.get(name) == mode:
        return False
    contents.pop(name, None)
    if mode is not None:
        contents[name] = mode
        notes[path] = dict(list(contents.items())[-_KEPT:])
    return True


def _write(view: Path, notes: Notes) -> None:
    beside = view / f"{_FILE}.new"
    beside.write_text(json.dumps({path: contents for path, contents in notes.items() if contents}))
    beside.replace(view / _FILE)
