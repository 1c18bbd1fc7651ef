"""Keeps the embedded server while it has clients and for a while after the last one; runs as a process of its own.

It holds the keeper's lock instead of a share: a process that gives back the last share leaves the server to it. The
process that starts the keeper takes the lock and hands it down, so that there is no moment in which nobody holds it.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import psycopg

from agentmesh.domain.errors import EmbeddedServerError
from agentmesh.store.embedded import locks
from agentmesh.store.embedded.cluster import Cluster
from agentmesh.store.embedded.places import Places
from agentmesh.store.errors import is_full

LINGER: Final = 600.0
"""How many seconds the server is kept after its last client."""
_LOCK_SECONDS: Final = 180.0
_END_SECONDS: Final = 5.0
_SHORTEST_LOOK: Final = 0.1
_LONGEST_LOOK: Final = 5.0
_LEAVING: Final = 0.5
"""How many seconds connections that were closed a moment ago may still be seen."""
_CLIENTS: Final = (
    "select count(*) from pg_stat_activity where backend_type in ('client backend', 'walsender')"
    " and pid <> pg_backend_pid() and application_name <> %s"
)
_SESSIONS: Final = "select coalesce(sum(sessions), 0)::bigint from pg_stat_database"
_NAME: Final = "agentmesh/keeper"


class _Wish(NamedTuple):
    """How long the server is to be kept, as the wish file says."""

    seconds: float
    written: int
    """When the file was last written (ns); a process that writes it again counts as a client."""


def keep(places: Places, seconds: float | None) -> None:
    """Have the running server kept by the present keeper or a new one. Call it under the start lock.

    Without ``seconds`` the present keeper stays as long as it would, counted from now; a new one has the default.
    """
    lock = _take(places)
    if seconds is None:
        seconds = LINGER if lock is not None else _read_wish(places, _Wish(LINGER, 0)).seconds
    places.keeper_wish.write_text(f"{seconds}\n", encoding="ascii")
    if lock is None:
        return
    try:
        package = Path(__file__).parents[3]
        environ = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, (str(package), os.environ.get("PYTHONPATH")))),
        }
        with (places.logs / "keeper.log").open("wb") as log:
            process = subprocess.Popen(  # the caller may wait for the end of its own output, so that is not handed down
                # Not by -m: its package imports this module, which Python would warn of.
                [sys.executable, "-c", f"import {__name__} as keeper; keeper.main()", str(places.data_dir), str(lock)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=places.home,
                env=environ,
                pass_fds=(lock,),
                start_new_session=True,
            )
        process.returncode = 0  # the keeper outlives this process, which never asks how it ended
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(process.pid).encode(), 0)
    finally:
        os.close(lock)


def is_kept(places: Places) -> bool:
    """Return whether a keeper runs. Call it under the start lock, because it takes the keeper's lock for an instant."""
    if not places.keeper_lock.exists():
        return False
    lock = _take(places)
    if lock is not None:
        os.close(lock)
    return lock is None


def end(places: Places) -> None:
    """End the keeper, if there is one; the server goes on. Call it under the start lock."""
    deadline = time.monotonic() + _END_SECONDS
    while is_kept(places) and time.monotonic() < deadline:
        with suppress(OSError, ValueError):
            os.kill(int(places.keeper_lock.read_text(encoding="ascii")), signal.SIGTERM)
        time.sleep(0.02)


def clients(cluster: Cluster) -> int:
    """Return how many clients are connected besides this process, waiting for those that were closed a moment ago."""
    deadline = time.monotonic() + _LEAVING
    while True:
        try:
            with _connect(cluster) as connection:
                count = _count(connection)
        except psycopg.Error as error:
            return 1 if is_full(error) else 0  # a server that cannot be asked serves nobody
        if not count or time.monotonic() >= deadline:
            return count
        time.sleep(0.02)


class _Keeper:
    """The main loop of the keeper's process."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._cluster = Cluster(places, Path(), {})
        self._seen = time.monotonic()
        self._sessions = -1
        self._wish = _Wish(LINGER, 0)

    def run(self) -> None:
        """Return when the server was stopped or no longer runs."""
        while True:
            try:
                with _connect(self._cluster) as connection:
                    self._wait(connection)
                if self._stop():
                    return
            except psycopg.Error:
                if self._is_gone():
                    return
                time.sleep(_SHORTEST_LOOK)

    def _wait(self, connection: psycopg.Connection) -> None:
        """Return when there was no client for as long as the server is to be kept."""
        while True:
            self._look(connection)
            left = self._seen + self._wish.seconds - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(left, max(_SHORTEST_LOOK, min(self._wish.seconds / 10, _LONGEST_LOOK))))

    def _look(self, connection: psycopg.Connection) -> None:
        """Note whether a client is there, or was there since the last look."""
        wish = _read_wish(self._places, self._wish)
        sessions = _scalar(connection, _SESSIONS)
        if _count(connection) or sessions != self._sessions or wish != self._wish:
            self._seen = time.monotonic()
        self._sessions, self._wish = sessions, wish

    def _stop(self) -> bool:
        """Stop the server unless a client came meanwhile; return whether the keeper is done."""
        with locks.exclusive(self._places.start_lock, _LOCK_SECONDS):
            if _read_wish(self._places, self._wish) != self._wish or clients(self._cluster):
                return False
            if not locks.held(self._places.shares):  # otherwise the process with the last share stops it
                self._cluster.stop()
            return True

    def _is_gone(self) -> bool:
        if not self._places.home.exists():
            return True
        with locks.exclusive(self._places.start_lock, _LOCK_SECONDS):
            return self._cluster.postmaster() is None


def _read_wish(places: Places, last: _Wish) -> _Wish:
    """Return the wish in the file; the last one if the file is being written."""
    try:
        text = places.keeper_wish.read_text(encoding="ascii")
        return _Wish(float(text), places.keeper_wish.stat().st_mtime_ns)
    except (OSError, ValueError):
        return last


def _connect(cluster: Cluster) -> psycopg.Connection:
    url = cluster.url(database="postgres")
    return psycopg.connect(url, autocommit=True, connect_timeout=2, application_name=_NAME)


def _count(connection: psycopg.Connection) -> int:
    found = connection.execute(_CLIENTS, [_NAME]).fetchone()
    return int(found[0]) if found else 0


def _scalar(connection: psycopg.Connection, query: str) -> int:
    found = connection.execute(query.encode()).fetchone()
    return int(found[0]) if found else 0


def _take(places: Places) -> int | None:
    """Return a descriptor that holds the keeper's lock; None while a keeper holds it."""
    lock = os.open(places.keeper_lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def main() -> None:
    """Keep the server of the data folder; the second argument is the lock's descriptor, held to the end."""
    os.set_inheritable(int(sys.argv[2]), False)
    try:
        _Keeper(Places(Path(sys.argv[1]))).run()
    except EmbeddedServerError as error:
        sys.exit(error.message)
