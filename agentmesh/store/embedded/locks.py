"""The two locks of an embedded server. Both use ``flock``, so that the kernel releases them even after ``kill -9``.

A process that starts or stops the server holds the start lock, exclusively and briefly. Each process that uses the
server holds a share. Shares are taken, given back and counted only under the start lock. So a process that leaves, and
then can lock the shares' file exclusively, is the last one.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentmesh.domain.errors import EmbeddedServerError


@contextmanager
def exclusive(path: Path, seconds: float) -> Iterator[None]:
    """Hold the lock file exclusively; raise if it cannot be had in time (its holder may be frozen)."""
    descriptor = _open(path)
    try:
        deadline = time.monotonic() + seconds
        while not _take(descriptor, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise EmbeddedServerError(
                    f"Another process has been starting or stopping the embedded server for {seconds:.0f} s.",
                    hint=f"`fuser {path}` names it; end it and try again.",
                )
            time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


class ServerShare:
    """This process's share in the server. Call its methods only under the start lock."""

    def __init__(self, path: Path) -> None:
        self._descriptor = _open(path)
        self._pid = os.getpid()
        self.take()

    def take(self) -> None:
        """Hold the share (again)."""
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def lend(self) -> None:
        """Give the share back for a moment, so that ``held`` tells whether any other process has one."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Give the share back for good."""
        # A forked child has the parent's lock, not one of its own: unlocking it there would take it from the parent.
        if not self.inherited:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)

    @property
    def inherited(self) -> bool:
        """Whether it is the share of the process that forked this one."""
        return self._pid != os.getpid()


def held(path: Path) -> bool:
    """Return whether any process holds a share. Call it only under the start lock: it takes the file for an instant."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        return not _take(descriptor, fcntl.LOCK_EX)
    finally:
        os.close(descriptor)


def holders(path: Path) -> int | None:
    """Return how many shares are held; None if the system does not tell (only Linux does, and not on every disk).

    Call it only under the start lock.
    """
    if not held(path):
        return 0
    inode = str(path.stat().st_ino)
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    # A line: "12: FLOCK  ADVISORY  READ 4711 08:01:131 0 EOF". The device is ignored: btrfs shows another than stat().
    fields = [line.split() for line in lines]
    found = sum(each[1:4] == ["FLOCK", "ADVISORY", "READ"] and each[5].split(":")[-1] == inode for each in fields)
    return found or None


def _open(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    if os.fstat(descriptor).st_mode & 0o777 != 0o600:
        os.fchmod(descriptor, 0o600)  # a umask may leave even us without rights
    return descriptor


def _take(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
