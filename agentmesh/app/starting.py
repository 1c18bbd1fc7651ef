"""Whether a background worker is starting: a lock that the new worker inherits and holds until it is registered.

If the worker dies before that, the kernel releases the lock. So two commands in a row start one worker, and neither
waits for long.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentmesh.config import paths
from agentmesh.config.settings import Settings

PATIENCE: Final = 15.0
"""Seconds that a worker may take to start before another one is started."""


def lock_file(settings: Settings) -> Path | None:
    """Return the lock file of this user's workers on the configured database; None if it cannot be created."""
    import hashlib  # not before the screen shows the session

    # A worker serves all databases of a configuration that names several, so they share one lock.
    several = " ".join(f"{name}={one.url}" for name, one in settings.databases.items())
    database = several or settings.database_url or str(settings.data_dir.resolve())
    try:
        folder = paths.make_user_state()
    except OSError:
        return None
    return folder / f"worker-{hashlib.sha256(database.encode()).hexdigest()[:16]}.starting"


@dataclass(frozen=True, slots=True)
class Held:
    """The lock, which this process holds by an open file."""

    descriptor: int


@dataclass(frozen=True, slots=True)
class Busy:
    """The lock of another process, whose worker is starting."""

    what: str
    """The text that it wrote to the file."""


def take(file: Path, what: str) -> Held | Busy | None:
    """Take the lock and write ``what`` to its file; while another worker starts, return what that one wrote.

    Return None if the file cannot be created, or if that worker has been starting for too long: then do not wait.
    """
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None
    while not _try_lock(descriptor, fcntl.LOCK_EX):
        if _try_lock(descriptor, fcntl.LOCK_SH):  # only ``is_starting`` has it, for a moment
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            continue
        found = os.fsdecode(os.pread(descriptor, 65_536, 0))
        is_fresh = _is_fresh(descriptor)
        os.close(descriptor)
        return Busy(found) if is_fresh else None
    os.ftruncate(descriptor, 0)
    with suppress(OSError):  # a full disk: others then wait until this worker is registered, whatever it serves
        os.pwrite(descriptor, os.fsencode(what), 0)
    return Held(descriptor)


def is_starting(file: Path) -> bool:
    """Return whether a worker is starting that has not registered yet; the lock stays as it is."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        return not _try_lock(descriptor, fcntl.LOCK_SH) and _is_fresh(descriptor)
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int, kind: int) -> bool:
    """Take the lock if nobody's lock forbids it; return whether it was taken."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_fresh(descriptor: int) -> bool:
    """Return whether the worker has not been starting for too long."""
    return abs(time.time() - os.fstat(descriptor).st_mtime) < PATIENCE
