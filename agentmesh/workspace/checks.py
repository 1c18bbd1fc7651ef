"""Throw-away trees, in which the check of a merge runs. One that a crash has left is found by its free lock."""

from __future__ import annotations

import contextlib
import fcntl
import os
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from agentmesh.git.place import Place

_PREFIX: Final = "check-"
_LOCK: Final = ".lock"


@contextlib.contextmanager
def throw_away_tree(
    place: Place, trees: Path, tree: str, *, copy: Sequence[str] = (), link: Sequence[str] = ()
) -> Iterator[Path]:
    """Make a directory with the files of a tree, yield the agent's root in it, and remove it.

    ``copy`` and ``link`` are as for an agent's own tree.
    """
    from agentmesh.git import marker
    from agentmesh.git.trees import make_tree

    trees.mkdir(parents=True, exist_ok=True)
    folder = trees / f"{_PREFIX}{uuid.uuid4().hex}"
    with _held(folder) as lock:
        try:
            folder.mkdir(mode=0o700)
            marker.write(folder, folder.name, place, ())  # first of all: only a folder with a marker is ever removed
            yield make_tree(place, tree, folder, folder.name, copy=copy, link=link)
        finally:
            if _remove(folder):
                lock.unlink(missing_ok=True)


def left(trees: Path) -> list[Path]:
    """Return the directories of checks whose process is gone."""
    found = []
    for lock in sorted(trees.glob(f"{_PREFIX}*{_LOCK}")):
        with _tried(lock) as is_free:
            if is_free:
                found.append(lock.with_suffix(""))
    return found


def clear(folder: Path) -> bool:
    """Remove the directory of a check whose process is gone; return whether it is gone."""
    lock = folder.with_name(folder.name + _LOCK)
    with _tried(lock) as is_free:
        if is_free and _remove(folder):
            lock.unlink(missing_ok=True)
            return True
    return False


def _remove(folder: Path) -> bool:
    from agentmesh.git.trees import remove_tree

    with contextlib.suppress(OSError):
        folder.rmdir()  # it had not even a marker yet
    return remove_tree(folder, folder.name, folder.parent)


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[Path]:
    """Hold the lock beside a folder that is to be made. The lock comes first, so no folder is ever without one."""
    lock = folder.with_name(folder.name + _LOCK)
    while True:
        fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            if _is_same(fd, lock):  # else somebody took it for a left one between these two lines, and removed it
                yield lock
                return
        finally:
            os.close(fd)


@contextlib.contextmanager
def _tried(lock: Path) -> Iterator[bool]:
    """Yield whether a lock was free, and hold it meanwhile."""
    try:
        fd = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        yield False
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        is_free = False
    else:
        is_free = True
    try:
        yield is_free and _is_same(fd, lock)
    finally:
        os.close(fd)


def _is_same(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False
