"""Throw-away trees, in which the check of a merge runs. One that a crash has left is found by its free lock."""

from __future__ import annotations

import contextlib
import fcntl
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from agentmesh.git.place import Place

_PREFIX: Final = "check-"
_LOCK: Final = ".lock"


@contextlib.contextmanager
def throw_away_tree(place: Place, trees: Path, tree: str) -> Iterator[Path]:
    """Make a directory with the files of a tree, yield the agent's root in it, and remove it."""
    from agentmesh.git.trees import check_tree, remove_folder

    trees.mkdir(parents=True, exist_ok=True)
    folder = trees / f"{_PREFIX}{uuid.uuid4().hex}"
    with _held(folder) as lock:
        try:
            yield check_tree(place, tree, folder)
        finally:
            remove_folder(folder)
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
    from agentmesh.git.trees import remove_folder

    lock = folder.with_name(folder.name + _LOCK)
    with _tried(lock) as is_free:
        if is_free:
            remove_folder(folder)
            lock.unlink(missing_ok=True)
    return not folder.exists()


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
