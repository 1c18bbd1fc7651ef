"""Bytes of files that Git's conversions would not bring back, such as LF where a checkout writes CR LF.

Git converts a file when it is added and when it is checked out, and leaves every other. An undo has to leave it too. So
where the two conversions do not lead back to the bytes on disk, these are kept beside the index. Each is a file, named
by the path and by the object as which the file was stored. Trees have the converted text: diffs, blame and merges see
that.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pygit2

from agentmesh.git import conversions
from agentmesh.git.rule_files import read_regular
from agentmesh.git.tree_objects import FILE, PROGRAM, Entry

_FOLDER: Final = "bytes"
_MOST_FILES: Final = 20_000
_MOST_BYTES: Final = 256 * 1024 * 1024
_PRUNED_AT: Final = "00"
"""A name that begins so has the folder pruned: one in 256, because all its files are looked at."""
_LARGE: Final = 1024 * 1024
"""Above so many bytes a file's rules are read before the file is."""


def note(view: pygit2.Repository, top: Path, files: Iterable[tuple[str, Entry]]) -> None:
    """Keep the bytes of those of these files, as they are on disk, that no conversion brings back."""
    adds_cr = conversions.adds_cr(view)
    for path, entry in files:
        if entry.mode in (FILE, PROGRAM):
            _note(view, os.path.join(top, path), path, entry, adds_cr=adds_cr)


def kept(folder: Path, rules: pygit2.Repository, path: str, entry: Entry) -> bytes | None:
    """Return the bytes that a file had with this content; None if none are kept, or the rules make another of them."""
    name = folder / _FOLDER / _name(path, entry)
    try:
        data = read_regular(name)
    except OSError:
        return None
    if not conversions.is_converted(rules, path):
        return None
    return data if conversions.object_id(rules, data, name, path) == entry.id else None


def prune(folder: Path, most_files: int = _MOST_FILES, most_bytes: int = _MOST_BYTES) -> None:
    """Remove the files that were kept first, until so many are left, and so many bytes."""
    with os.scandir(folder / _FOLDER) as found:
        files = sorted(((each.stat().st_mtime_ns, each.stat().st_size, each.path) for each in found), reverse=True)
    size = 0
    for count, (_, length, path) in enumerate(files, start=1):
        size += length
        if count > most_files or size > most_bytes:
            os.unlink(path)


def _note(view: pygit2.Repository, full: str, path: str, entry: Entry, *, adds_cr: bool) -> None:
    try:
        size = os.lstat(full).st_size
        if size > _MOST_BYTES or (size > _LARGE and not conversions.is_converted(view, path)):
            return
        data = read_regular(Path(full))
        if _comes_back(view, data, path, entry, adds_cr=adds_cr):
            (Path(view.path) / _FOLDER / _name(path, entry)).unlink(missing_ok=True)
            return
        if conversions.object_id(view, data, Path(full), path) != entry.id:
            return  # somebody has changed it: the next look sees that
    except (OSError, pygit2.GitError):
        return
    _save(Path(view.path), _name(path, entry), data)


def _comes_back(view: pygit2.Repository, data: bytes, path: str, entry: Entry, *, adds_cr: bool) -> bool:
    """Return whether a checkout of this file writes these bytes. Most files are as in Git, and then it is soon told."""
    is_as_in_git = pygit2.hash(data).raw == entry.id
    if is_as_in_git and b"$Id" not in data and (b"\n" not in data or not (adds_cr or conversions.is_crlf(view, path))):
        return True
    if not conversions.is_converted(view, path):
        return True
    return conversions.to_disk(view, view[pygit2.Oid(raw=entry.id)].peel(pygit2.Blob), path) == data


def _name(path: str, entry: Entry) -> str:
    return hashlib.sha256(os.fsencode(path) + b"\0" + entry.id).hexdigest()


def _save(view: Path, name: str, data: bytes) -> None:
    """Write bytes to a file of their own, for our eyes only."""
    folder = view / _FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    beside = folder / f"{name}.new"
    beside.write_bytes(data)
    beside.replace(folder / name)
    if name.startswith(_PRUNED_AT):
        prune(view)
