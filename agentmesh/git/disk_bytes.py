"""Bytes of files that Git's conversions would not bring back, such as LF where a checkout writes CR LF.

Git converts a file when it is added and when it is checked out, and leaves every other. An undo has to leave it too. So
where the two conversions do not lead back to the bytes on disk, these are kept beside the index. Their key is the path,
and the object as which the file was stored. Trees have the converted text: diffs, blame and merges see that.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypeGuard

import pygit2

from agentmesh.domain import jsontext
from agentmesh.git import conversions
from agentmesh.git.rule_files import read_regular
from agentmesh.git.tree_objects import FILE, PROGRAM, Entry

_NOTES: Final = "bytes.json"
_FOLDER: Final = "bytes"
_KEPT: Final = 100
"""Contents of one path that are remembered."""

Notes = dict[str, dict[str, str]]
"""Names of files in our folder, by path and by the id of the object."""


def read(folder: Path) -> Notes:
    """Return the notes in the folder of a view. Those that cannot be read are lost."""
    try:
        found = jsontext.parse((folder / _NOTES).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return found if _are_notes(found) else {}


def _are_notes(found: object) -> TypeGuard[Notes]:
    return isinstance(found, dict) and all(
        isinstance(contents, dict) and all(isinstance(name, str) for name in contents.values())
        for contents in found.values()
    )


def note(view: pygit2.Repository, top: Path, files: Iterable[tuple[str, Entry]]) -> None:
    """Keep the bytes of those of these files, as they are on disk, that no conversion brings back."""
    folder = Path(view.path)
    notes: Notes | None = None
    before = ""
    for path, entry in files:
        if entry.mode in (FILE, PROGRAM) and conversions.is_converted(view, path):
            if notes is None:
                notes = read(folder)
                before = json.dumps(notes)
            _note(view, notes, top / path, path, entry)
    if notes is not None and json.dumps(notes) != before:
        _write(folder, notes)


def kept(folder: Path, notes: Notes, rules: pygit2.Repository, path: str, entry: Entry) -> bytes | None:
    """Return the bytes that a file had with this content; None if none are kept, or the rules make another of them."""
    name = notes.get(path, {}).get(entry.id.hex())
    if name is None or not conversions.is_converted(rules, path):
        return None
    try:
        data = read_regular(folder / _FOLDER / name)
    except OSError:
        return None
    return data if conversions.object_id(rules, data, folder / _FOLDER / name, path) == entry.id else None


def _note(view: pygit2.Repository, notes: Notes, full: Path, path: str, entry: Entry) -> None:
    try:
        data = read_regular(full)
        stored = conversions.object_id(view, data, full, path)
    except (OSError, pygit2.GitError):
        return
    if stored != entry.id:
        return  # somebody has changed it: the next look sees that
    contents = notes.get(path, {})
    contents.pop(entry.id.hex(), None)
    if conversions.to_disk(view, view[pygit2.Oid(raw=entry.id)].peel(pygit2.Blob), path) != data:
        contents[entry.id.hex()] = _saved(Path(view.path) / _FOLDER, data)
    if contents:
        notes[path] = dict(list(contents.items())[-_KEPT:])
    else:
        notes.pop(path, None)


def _saved(folder: Path, data: bytes) -> str:
    """Write bytes to a file of their own, for our eyes only, and return its name."""
    name = hashlib.sha256(data).hexdigest()
    if not (folder / name).exists():
        folder.mkdir(mode=0o700, exist_ok=True)
        beside = folder / f"{name}.new"
        beside.write_bytes(data)
        beside.replace(folder / name)
    return name


def _write(folder: Path, notes: Notes) -> None:
    """Write the notes, then remove the files that none names."""
    beside = folder / f"{_NOTES}.new"
    beside.write_text(json.dumps(notes))
    beside.replace(folder / _NOTES)
    named = {name for contents in notes.values() for name in contents.values()}
    for name in os.listdir(folder / _FOLDER) if (folder / _FOLDER).is_dir() else ():
        if name not in named:
            (folder / _FOLDER / name).unlink()
