"""The first index of a workspace: a copy of the user's, because that knows the files' times.

Without it the first snapshot would have to read every file. Two flags in it mean "do not look at this file" and would
hide what agents change: assume-unchanged, and skip-worktree of a file that is there. The copy has neither.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
from pathlib import Path
from typing import Final, NamedTuple

from agentmesh.domain import jsontext
from agentmesh.domain.errors import NoRepository
from agentmesh.git.rule_files import read_regular

_ENTRY: Final = 62
"""Bytes of an entry before its extended flags and its name."""
_ASSUMED, _EXTENDED, _STAGE, _NAME = 0x8000, 0x4000, 0x3000, 0x0FFF
_SKIPPED: Final = 0x4000
SKIPPED: Final = "skipped.json"
"""Name of the file beside the index with the files that a sparse checkout leaves out."""


class Copied(NamedTuple):
    """What a copy of the user's index needs besides being read."""

    unmerged: frozenset[str]
    """Files that have several versions in it. Their file on disk is what counts."""
    skipped: frozenset[str]
    """Files that a sparse checkout leaves out of the working tree."""


def read_skipped(view: Path) -> set[str]:
    """Return the files that a sparse checkout left out when the index was begun."""
    names = view / SKIPPED
    return set(jsontext.parse(names.read_bytes())) if names.exists() else set()


def copy_index(source: Path, target: Path, top: Path) -> Copied | None:
    """Copy the user's index to ``target``; return None if there is none, or it is of a form that only git reads."""
    try:
        data = bytearray(read_regular(source))
        times = source.stat()
    except FileNotFoundError:
        return None
    if data[:4] != b"DIRC" or int.from_bytes(data[4:8], "big") not in (2, 3, 4):
        return None
    unmerged, skipped, end = _look_at(data, os.fsencode(top))
    names = _extensions(data, end)
    if b"sdir" in names:
        raise NoRepository(
            f"The Git repository {top} has a sparse index, which agentmesh cannot read.",
            hint="Run `git sparse-checkout reapply --no-sparse-index` there.",
        )
    if b"link" in names:
        return None
    data[-20:] = hashlib.sha1(data[:-20], usedforsecurity=False).digest()
    beside = target.with_name("index.new")
    beside.write_bytes(data)
    # A file that is as new as the index may have changed after it was looked at: so the copy must not look newer.
    os.utime(beside, ns=(times.st_atime_ns, times.st_mtime_ns))
    beside.replace(target)
    return Copied(frozenset(unmerged), frozenset(skipped))


def _look_at(data: bytearray, top: bytes) -> tuple[set[str], set[str], int]:
    """Clear the flags that hide changes; return the unmerged and the skipped files, and where the entries end."""
    version, count = struct.unpack_from(">II", data, 4)
    unmerged: set[str] = set()
    skipped: set[str] = set()
    at, name = 12, b""
    for _ in range(count):
        (flags,) = struct.unpack_from(">H", data, at + 60)
        start = at + _ENTRY + (2 if flags & _EXTENDED else 0)
        name, following = _compressed(data, start, name) if version == 4 else _plain(data, at, start, flags)
        if flags & _STAGE:
            unmerged.add(os.fsdecode(name))
        if flags & _ASSUMED:
            struct.pack_into(">H", data, at + 60, flags & ~_ASSUMED)
        if flags & _EXTENDED and _is_skipped(data, at + _ENTRY, os.path.join(top, name)):
            skipped.add(os.fsdecode(name))
        at = following
    return unmerged, skipped, at


def _is_skipped(data: bytearray, at: int, path: bytes) -> bool:
    """Return whether a file is left out; if it is there, clear the flag."""
    (extended,) = struct.unpack_from(">H", data, at)
    if extended & _SKIPPED and _is_there(path):
        struct.pack_into(">H", data, at, extended & ~_SKIPPED)
        return False
    return bool(extended & _SKIPPED)


def _is_there(path: bytes) -> bool:
    try:
        return not stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _plain(data: bytearray, at: int, start: int, flags: int) -> tuple[bytes, int]:
    length = flags & _NAME
    end = start + length if length < _NAME else data.index(b"\0", start)
    return bytes(data[start:end]), at + ((end - at) // 8 + 1) * 8


def _compressed(data: bytearray, start: int, before: bytes) -> tuple[bytes, int]:
    """Return the name of an entry of version 4: so many bytes less than the one before, and a rest."""
    byte = data[start]
    start += 1
    dropped = byte & 0x7F
    while byte & 0x80:
        byte = data[start]
        start += 1
        dropped = ((dropped + 1) << 7) | (byte & 0x7F)
    end = data.index(b"\0", start)
    return before[: len(before) - dropped] + bytes(data[start:end]), end + 1


def _extensions(data: bytearray, at: int) -> set[bytes]:
    names: set[bytes] = set()
    while at + 8 <= len(data) - 20:
        names.add(bytes(data[at : at + 4]))
        at += 8 + int.from_bytes(data[at + 4 : at + 8], "big")
    return names
