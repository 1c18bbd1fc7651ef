"""The worker that a process starts in the background, so that people need not start one."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO, Final

from agentmesh.app import helper, starting
from agentmesh.config import paths
from agentmesh.config.settings import Settings
from agentmesh.domain.rows import Session
from agentmesh.domain.text import one_line

_AGAIN: Final = 3.0
"""Seconds before the next worker is started after one has just ended."""
_WORKS: Final = 5.0
"""A worker that has run for so many seconds has begun to work."""
_LOOK: Final = 0.1
_MOST_WORDS: Final = 4_096
"""Bytes at the end of the workers' log that are searched for the reason why a worker has ended."""
_SAYS: Final = "agentmesh: "
"""The beginning of a line in which a command says why it ends."""
_MOST_BYTES: Final = 10_000_000
"""Size limit of the workers' log, checked when a worker starts; one older file is kept."""


class BackgroundWorker:
    """Starts ``agentmesh worker``, one at a time; ``Serving`` knows when that is needed."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ
        self.process: subprocess.Popen[bytes] | None = None
        """The last one started, which outlives this process."""
        self._began = 0.0
        self._workdir = ""
        self._log: tuple[str, int] = (os.devnull, 0)
        """The last one's log, and the bytes that were in it before."""
        self._failure: str | None = None
        self._lock = threading.Lock()

    def start(self, session: Session, provider: str, is_served: Callable[[], bool]) -> bool:
        """Start a worker for a session without one, unless one is starting; return whether one was started."""
        with self._lock:  # if several threads want a worker, only the first starts one
            self._look_at_last()
            return self._start_unless_starting(session, provider, is_served)

    def is_starting(self) -> bool:
        """Return whether a process of this user has started a worker that has not registered yet."""
        file = starting.lock_file(self._settings)
        return file is not None and starting.is_starting(file)

    def failure(self) -> str | None:
        """Return why the last worker that ended by an error did so, in its own words; None if none has."""
        with self._lock:
            self._look_at_last()
            return self._failure

    def _look_at_last(self) -> None:
        """Keep why the last worker has ended, if it was an error; forget it once another one has worked."""
        if self.process is None:
            return
        code = self.process.poll()
        if code is not None and code > 0:
            self._failure = _last_words(*self._log) or "its log has the reason"
        elif code is not None or time.monotonic() - self._began > _WORKS:
            self._failure = None

    def _start_unless_starting(self, session: Session, provider: str, is_served: Callable[[], bool]) -> bool:
        if self._failed_before(session.workdir):
            return False
        lock = self._starting_lock(" ".join((provider, session.workdir, *session.endpoints)))
        if isinstance(lock, starting.Busy):
            return False  # another process is starting one here: it will serve this session too
        try:
            if is_served():
                return False  # it was registered while this process took the lock
            self._start(session, lock)
        finally:
            if lock is not None:
                os.close(lock.descriptor)
        return True

    def _failed_before(self, workdir: str) -> bool:
        """Return whether this process's last worker in the directory is still starting, or ended a moment ago."""
        if self.process is None or workdir != self._workdir:
            return False  # a failure in one directory need not occur in another
        patience = starting.PATIENCE if self.process.poll() is None else _AGAIN
        return time.monotonic() - self._began < patience

    def _starting_lock(self, what: str) -> starting.Held | starting.Busy | None:
        """Take the lock for starting a worker; return None if there is none, or if waiting for it took too long.

        If a worker is starting for another provider or directory, wait for it: it may fail, or serve other sessions
        only.
        """
        file = starting.lock_file(self._settings)
        deadline = time.monotonic() + starting.PATIENCE
        while file is not None:
            lock = starting.take(file, what)
            if not isinstance(lock, starting.Busy) or lock.what == what:
                return lock
            if time.monotonic() >= deadline:
                return None
            time.sleep(_LOOK)
        return None

    def _start(self, session: Session, lock: starting.Held | None) -> None:
        self._began, self._workdir = time.monotonic(), session.workdir
        inherited = () if lock is None else (lock.descriptor,)
        options = [] if lock is None else ["--starting-lock", str(lock.descriptor)]
        workdir = Path(session.workdir)
        environ = helper.environment(self._environ, workdir)
        # If there are several databases, the worker reads the configuration and serves all of them.
        if self._settings.database_url and not self._settings.databases:
            environ["AGENTMESH_DATABASE_URL"] = self._settings.database_url
            environ["AGENTMESH_DIRECT_DATABASE_URL"] = self._settings.direct_database_url or ""
        environ["AGENTMESH_DATA_DIR"] = str(self._settings.data_dir)
        if self._settings.log.file:
            environ["AGENTMESH_LOG_FILE"] = self._settings.log.file
        with _open_worker_log() as log:
            self._log = (log.name, log.seek(0, os.SEEK_END))
            self.process = subprocess.Popen(
                helper.command("worker", "--linger", "60", *options),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=workdir if workdir.is_dir() else None,
                env=environ,
                pass_fds=inherited,
                start_new_session=True,
            )


def _last_words(file: str, since: int) -> str:
    """Return the last message of a command in the workers' log after these bytes; "" if there is none."""
    try:
        with open(file, "rb") as log:
            log.seek(max(since, log.seek(0, os.SEEK_END) - _MOST_WORDS))
            lines = log.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    said = [line.removeprefix(_SAYS) for line in lines if line.startswith(_SAYS)]
    return one_line(said[-1], 200) if said else ""


def _open_worker_log() -> BinaryIO:
    """Open the log of background workers; if the home is not writable, they work without one."""
    try:
        folder = paths.make_user_state()
        file = folder / "worker.log"
        if file.exists() and file.stat().st_size > _MOST_BYTES:
            file.replace(folder / "worker.log.1")
        return file.open("ab")
    except OSError:
        return open(os.devnull, "ab")
