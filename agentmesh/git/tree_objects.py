"""Trees as objects: read one directory, and write a tree that differs from another in some paths.

Directories are read and written as the bytes that Git stores, so every name that a file can have is kept as it is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import pygit2
from pygit2.enums import ObjectType

EMPTY: Final = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""The tree without files."""
DIRECTORY: Final = 0o040000
FILE: Final = 0o100644
PROGRAM: Final = 0o100755
LINK: Final = 0o120000
SUBMODULE: Final = 0o160000


class Entry(NamedTuple):
    """What a name stands for in a tree."""

    mode: int
    id: bytes


Edits = Mapping[str, "Entry | None"]
"""What becomes of paths: a new entry, or None if it goes."""


def read(repository: pygit2.Repository, tree: str) -> dict[bytes, Entry]:
    """Return the entries of one directory."""
    if tree == EMPTY:
        return {}
    data = bytes(repository.odb.read(tree)[1])
    entries: dict[bytes, Entry] = {}
    at = 0
    while at < len(data):
        space, end = data.index(b" ", at), data.index(b"\0", at)
        entries[data[space + 1 : end]] = Entry(int(data[at:space], 8), data[end + 1 : end + 21])
        at = end + 21
    return entries


def write(repository: pygit2.Repository, entries: Mapping[bytes, Entry]) -> str:
    """Write one directory and return its id."""
    ordered = sorted(entries.items(), key=lambda item: item[0] + b"/" if item[1].mode == DIRECTORY else item[0])
    data = b"".join(b"%o %b\0%b" % (entry.mode, name, entry.id) for name, entry in ordered)
    return str(repository.odb.write(int(ObjectType.TREE), data))


def edited(repository: pygit2.Repository, tree: str, edits: Edits) -> str:
    """Write the tree that differs from ``tree`` by ``edits``, and return its id. Directories without files vanish."""
    if not edits:
        return tree
    split = {tuple(os.fsencode(path).split(b"/")): entry for path, entry in edits.items()}
    return _edited(repository, tree, split) or write(repository, {})


def entry_at(repository: pygit2.Repository, tree: str, path: str) -> Entry | None:
    """Return the entry of a path, or None."""
    try:
        found = repository[tree].peel(pygit2.Tree)[path]
    except KeyError:
        return None
    return Entry(int(found.filemode), found.id.raw)


def files(repository: pygit2.Repository, tree: str, at: str = "") -> Iterator[tuple[str, Entry]]:
    """Yield all files, links and submodules of a tree by path."""
    for name, entry in read(repository, tree).items():
        path = at + os.fsdecode(name)
        if entry.mode == DIRECTORY:
            yield from files(repository, entry.id.hex(), f"{path}/")
        else:
            yield path, entry


def _edited(repository: pygit2.Repository, tree: str, edits: Mapping[tuple[bytes, ...], Entry | None]) -> str | None:
    """Return the id of the edited directory, or None if it has no entries."""
    entries = read(repository, tree)
    below: dict[bytes, dict[tuple[bytes, ...], Entry | None]] = {}
    for path, entry in edits.items():
        if len(path) > 1:
            below.setdefault(path[0], {})[path[1:]] = entry
        elif entry is None:
            if path[0] in entries and entries[path[0]].mode != DIRECTORY:
                del entries[path[0]]
        else:
            entries[path[0]] = entry
    for name, inner in below.items():
        _edit_below(repository, entries, name, inner)
    return write(repository, entries) if entries else None


def _edit_below(
    repository: pygit2.Repository,
    entries: dict[bytes, Entry],
    name: bytes,
    edits: Mapping[tuple[bytes, ...], Entry | None],
) -> None:
    """Edit one directory in ``entries``. A file of that name gives way to a directory if anything is written in it."""
    old = entries.get(name)
    is_directory = old is not None and old.mode == DIRECTORY
    if not is_directory and all(entry is None for entry in edits.values()):
        return
    new = _edited(repository, old.id.hex() if old is not None and is_directory else EMPTY, edits)
    if new is not None:
        entries[name] = Entry(DIRECTORY, bytes.fromhex(new))
    else:
        entries.pop(name, None)
