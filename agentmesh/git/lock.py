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
def locked(folder: Path, *, patience: float = _PATIENCE) -> Iterator[None]:
    """Hold the workspace's lock, or raise TreeBusy. It ends with the process, however that ends."""
    folder.mkdir(parents=True, exist_ok=True)
    file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _wait_for(file, folder, patience)
        yield
    finally:
        os.close(file)


def _wait_for(file: int, folder: Path, patience: float) -> None:
    until = time.monotonic() + patience
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
