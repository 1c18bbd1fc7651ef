"""The lock of a workspace's folder, for threads and processes of one host."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agentmesh.domain.errors import TreeBusy

LOCK: Final = "lock"
_PATIENCE: Final = 60.0
_LOOK: Final = 0.005


@contextmanager
def locked(folder: Path, *, patience: float = _PATIENCE, make: bool = True) -> Iterator[None]:
    """Hold the workspace's lock, or raise TreeBusy. It ends with the process, however that ends.

    ``make`` the folder if it is not there; otherwise raise FileNotFoundError. One that is removed by the holder, with
    its lock, is locked by nobody who waited for it.
    """
    until = time.monotonic() + patience
    while True:
        if make:
            folder.mkdir(parents=True, exist_ok=True)
        try:
            file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            if make:  # it was removed a moment ago
                continue
            raise
        try:
            _wait_for(file, folder, until, patience)
            if _is_there(file, folder):
                yield
                return
        finally:
            os.close(file)


def _is_there(file: int, folder: Path) -> bool:
    """Return whether this open file is still the folder's lock."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(folder / LOCK))
    except FileNotFoundError:
        return False


def _wait_for(file: int, folder: Path, until: float, patience: float) -> None:
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise TreeBusy(
                    f"Another process has worked with the files of {folder.name} for {patience:g} s.",
                    hint="Try again; `lsof` on its file `lock` names the process.",
                ) from None
            time.sleep(_LOOK)
        else:
            return
