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
from agentmesh.git.where import Place

_FOLDER: Final = "bytes"
_MOST_FILES: Final = 20_000
_MOST_BYTES: Final = 256 * 1024 * 1024
_MOST_FIRST: Final = 5_000
"""So many files are read before an agent touches them, and none if there are more. A file takes up to 0.5 ms."""
_TEXT: Final = bytes({*range(0x20, 0x7F), *range(0x80, 0x100), *b"\t\n\r"})
"""What libgit2 never takes for the content of a binary file."""
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


def note_first(place: Place, view: pygit2.Repository, index: pygit2.Index, files: Iterable[tuple[str, Entry]]) -> None:
    """Keep likewise the bytes of the files that were there before an agent, where a checkout may write CR LF.

    Each file is read: so this is done once, and not in a large repository.
    """
    if len(index) <= _MOST_FIRST and conversions.may_add_cr(view, index, place.top, place.common_dir):
        note(view, place.top, files)


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
        is_as_in_git = pygit2.hash(data).raw == entry.id
        if _comes_back(view, data, path, entry, is_as_in_git=is_as_in_git, adds_cr=adds_cr):
            (Path(view.path) / _FOLDER / _name(path, entry)).unlink(missing_ok=True)
            return
        if not is_as_in_git and conversions.object_id(view, data, Path(full), path) != entry.id:
            return  # somebody has changed it: the next look sees that
    except (OSError, pygit2.GitError):
        return
    _save(Path(view.path), _name(path, entry), data)


def _comes_back(
    view: pygit2.Repository, data: bytes, path: str, entry: Entry, *, is_as_in_git: bool, adds_cr: bool
) -> bool:
    """Return whether a checkout of this file writes these bytes. For most files a hash tells."""
    adds_cr = b"\n" in data and conversions.adds_cr_in(view, path, by_settings=adds_cr)
    is_plain = b"$Id" not in data and not data.translate(None, _TEXT)
    if is_as_in_git and not adds_cr and b"$Id" not in data:
        return True
    if is_plain and adds_cr and not is_as_in_git and _id_without_cr(data) == entry.id:
        return True
    if not conversions.is_converted(view, path):
        return True
    if is_plain and adds_cr and is_as_in_git and b"\r" not in data:
        return False
    return conversions.to_disk(view, view[pygit2.Oid(raw=entry.id)].peel(pygit2.Blob), path) == data


def _id_without_cr(data: bytes) -> bytes | None:
    """Return the id of a text without its CR; None if not each of its lines ends in CR LF."""
    if not data.count(b"\r\n") == data.count(b"\n") == data.count(b"\r"):
        return None
    return pygit2.hash(data.replace(b"\r\n", b"\n")).raw


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
