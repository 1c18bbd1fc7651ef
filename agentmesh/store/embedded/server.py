"""The embedded server as its users see it: take a share, get a URL, give the share back. The last one stops it."""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from psycopg.pq import Ping

from agentmesh.domain.errors import EmbeddedServerError
from agentmesh.store import lineage
from agentmesh.store.embedded import keeper, locks
from agentmesh.store.embedded.account import existing_account, server_account
from agentmesh.store.embedded.cluster import OWNER, Cluster
from agentmesh.store.embedded.places import Places
from agentmesh.store.embedded.programs import version_of, wheel_bin

_LOCK_SECONDS: Final = 180.0
"""Longer than any start or stop takes; only a frozen process holds the start lock that long."""
_LOOK_SECONDS: Final = 2.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EmbeddedStatus:
    """The state of an embedded server."""

    data_dir: Path
    running: bool
    """Whether it takes connections."""
    pid: int | None
    version: str
    """The version of the programs, as PostgreSQL writes it: ``18.4``."""
    socket_dir: Path
    holders: int | None
    """How many processes hold a share, with this one; None if the system does not tell."""
    log_file: Path | None


class EmbeddedServer:
    """A PostgreSQL server of this user's own in a data folder, shared by all processes that hold a share of it.

    ``settings`` (names and values of postgresql.conf) hold if this process is the one that starts the server.
    ``bin_dir`` names other programs than the wheel's. Methods may be called from several threads.
    """

    def __init__(
        self, data_dir: Path, *, settings: Mapping[str, str] | None = None, bin_dir: Path | None = None
    ) -> None:
        folder = data_dir.resolve()
        if not str(folder).isprintable():
            raise EmbeddedServerError(
                f"The data folder's name has characters that PostgreSQL cannot take: {str(folder)!r}."
            )
        self._places = Places(folder)
        self._bin_dir = bin_dir.resolve() if bin_dir else None
        self._settings = dict(settings or {})
        self._guard = threading.Lock()
        self._share: locks.ServerShare | None = None

    def acquire(self) -> str:
        """Start the server if needed, hold a share in it and return the owner's URL.

        Call it again if the server is gone.
        """
        with self._guard, self._disk_errors_translated():
            account = server_account()
            self._places.prepare(account)
            with self._changing():
                before = self._own_share()
                share = before or locks.ServerShare(self._places.shares)
                try:
                    self._cluster().ensure_running(account)
                except BaseException:
                    # A server that still recovers from a crash must be able to finish: only a server that is up is
                    # stopped.
                    if before is None and self._cluster().ping(account) is Ping.OK:
                        self._leave(share)
                    if before is None:
                        share.close()
                    raise
                if before is None:
                    self._share = share
                    atexit.register(self._release_at_exit)
        lineage.forget(self.url())
        return self.url()

    def revive(self) -> str:
        """The same for a server that died under us; raise EmbeddedServerError, and make none, if its data are gone."""
        if not self._places.cluster.exists():
            raise EmbeddedServerError(
                f"{self._places.cluster} was deleted under this program.", hint="End it; the next command begins anew."
            )
        return self.acquire()

    def release(self) -> None:
        """Give the share back; the last one stops the server. Without a share, do nothing."""
        with self._guard, self._disk_errors_translated():
            share, self._share = self._share, None
            if share is None:
                return
            atexit.unregister(self._release_at_exit)
            try:
                if not share.inherited and self._places.home.exists():
                    with self._changing():
                        self._leave(share)
            finally:
                share.close()

    def stop(self, *, force: bool = False) -> bool:
        """Stop the server; return False if it did not run. If other processes hold shares, only ``force`` does it."""
        with self._guard, self._disk_errors_translated():
            if not self._places.home.exists():
                return False
            with self._changing():
                return self._stop(force=force)

    def keep(self, seconds: float | None) -> None:
        """Keep the server, which this process holds a share in, until it has had no client for this many seconds.

        None: as long as somebody else has asked for, or for 600 s.
        """
        with self._guard, self._disk_errors_translated(), self._changing():
            keeper.keep(self._places, seconds)

    @property
    def home(self) -> Path:
        """The folder of everything that the server keeps; if it is deleted, the next start makes an empty one."""
        return self._places.home

    def running(self) -> bool:
        """Return whether the server takes connections."""
        return self._cluster().ping(existing_account()) is Ping.OK

    def status(self) -> EmbeddedStatus:
        """Return its state; starts nothing and makes nothing."""
        with self._disk_errors_translated():
            return EmbeddedStatus(
                data_dir=self._places.data_dir,
                running=self.running(),
                pid=self._cluster().postmaster(),
                version=version_of(self._programs()),
                socket_dir=self._places.socket_dir,
                holders=self._holders(),
                log_file=self._places.server_log,
            )

    def url(self, *, role: str | None = None) -> str:
        """Return the URL of the database for the owner or another role; starts nothing."""
        return self._cluster().url(role=role or OWNER)

    def binary(self, name: str) -> Path:
        """Return the path of one of PostgreSQL's programs, such as psql, pg_dump or pgbench."""
        path = self._programs() / name
        if not path.is_file():
            raise EmbeddedServerError(
                f"The embedded PostgreSQL has no program {name}.", hint=f"Look into {path.parent}."
            )
        return path

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _programs(self) -> Path:
        return self._bin_dir or wheel_bin()

    def _cluster(self) -> Cluster:
        return Cluster(self._places, self._programs(), self._settings)

    @contextmanager
    def _disk_errors_translated(self) -> Iterator[None]:
        """Raise errors of the disk as a domain error."""
        try:
            yield
        except OSError as error:
            raise EmbeddedServerError(
                f"The embedded server's folder {self._places.home} cannot be used: {error}.",
                hint="Look at its owner and at the space on its disk.",
            ) from error

    def _changing(self) -> AbstractContextManager[None]:
        """Hold the start lock, without which neither shares nor server may change."""
        return locks.exclusive(self._places.start_lock, _LOCK_SECONDS)

    def _leave(self, share: locks.ServerShare) -> None:
        """Stop the server after the last share, unless it is kept; if it has clients, keep it until they leave."""
        share.lend()
        if locks.held(self._places.shares) or keeper.is_kept(self._places):
            return
        if keeper.clients(self._cluster()):
            keeper.keep(self._places, keeper.LINGER)
        else:
            self._cluster().stop()

    def _stop(self, *, force: bool) -> bool:
        if self._cluster().postmaster() is None:
            return False
        share = self._own_share()
        if share:
            share.lend()
        try:
            if not force and locks.held(self._places.shares):
                raise self._in_use()
            if not force and (count := keeper.clients(self._cluster())):
                raise _has_clients(count)
            keeper.end(self._places)
            return self._cluster().stop()
        finally:
            if share:
                share.take()

    def _own_share(self) -> locks.ServerShare | None:
        """Return our share; drop one that a fork inherited, because it is the parent's."""
        if self._share and self._share.inherited:
            self._share.close()
            self._share = None
        return self._share

    def _holders(self) -> int | None:
        if not self._places.shares.exists():
            return 0
        with suppress(EmbeddedServerError), locks.exclusive(self._places.start_lock, _LOOK_SECONDS):
            return locks.holders(self._places.shares)
        return None

    def _in_use(self) -> EmbeddedServerError:
        count = locks.holders(self._places.shares)
        who = {None: "Other processes use", 1: "1 other process uses"}.get(count, f"{count} other processes use")
        return EmbeddedServerError(
            f"{who} the embedded server.", hint="End them first, or stop it under them: `agentmesh db stop --force`."
        )

    def _release_at_exit(self) -> None:
        try:
            self.release()
        except EmbeddedServerError as error:
            _log.warning("embedded server in %s: %s", self._places.data_dir, error.message)


def _has_clients(count: int) -> EmbeddedServerError:
    who = "1 client is" if count == 1 else f"{count} clients are"
    return EmbeddedServerError(
        f"{who} connected to the embedded server.",
        hint="Leave them first (psql, for example), or stop it under them: `agentmesh db stop --force`.",
    )
