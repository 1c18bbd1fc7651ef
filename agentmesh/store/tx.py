"""Runs store functions: takes a connection, repeats what may be repeated, and lets only domain errors out.

A store function takes a ``Connection`` first and makes one statement, so every call is one commit and can be repeated
as a whole. PostgreSQL itself says when that is safe (deadlock, serialization, lock timeout): then nothing was changed.
After a lost connection nobody knows whether the commit happened, so only a call declared ``idempotent`` is repeated.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeVar

import psycopg
from psycopg import errors as pg
from psycopg.pq import TransactionStatus

from agentmesh.domain.errors import (
    AgentmeshError,
    DatabaseBusy,
    DatabaseError,
    DatabaseUnreachable,
    EmbeddedServerError,
    ServerReplaced,
    UsageError,
)
from agentmesh.store import notify_queue
from agentmesh.store.errors import domain_error, translated
from agentmesh.store.pool import KeptConnection, connect, describe, is_alive, is_direct, open_pool
from agentmesh.store.sizes import POOL_SIZE

if TYPE_CHECKING:
    from psycopg_pool import ConnectionPool

Result = TypeVar("Result")

_UNCHANGED: Final = (pg.DeadlockDetected, pg.SerializationFailure, pg.LockNotAvailable)
"""What PostgreSQL raises if it undid the whole statement because of another session."""

_MULTIXACT: Final = "new multixact has more than one updating member"
"""PostgreSQL's internal error if two updates of a row and a foreign key's check of it meet in one instant.

Seen once in hours of storms on version 18. The statement was undone; the next try finds the row at rest.
"""

_ATTEMPTS: Final = 6
_FIRST_PAUSE: Final = 0.01
"""In seconds. Each further pause is twice as long; the real one is drawn from half of it to the whole."""

_AT_HAND: Final = 60.0
"""After this many seconds a connection goes through the pool again, which limits its age."""

_ASK_AGAIN: Final = 1.0
"""After this many seconds, a waiting caller makes the pool try to connect once more."""


class PoolLoad(NamedTuple):
    """How busy a process's connections are."""

    in_use: int
    most: int
    """Size limit of the pool."""
    waiting: int
    """Calls that wait for a connection."""


class Database:
    """One process's way to the database, shared by its threads."""

    def __init__(
        self,
        url: str,
        direct_url: str | None = None,
        *,
        role: str,
        pool_size: int = POOL_SIZE,
        patience: float = 15.0,
        revive: Callable[[], object] | None = None,
        first: KeptConnection | None = None,
    ) -> None:
        """``first`` is a connection to begin with, of this role; from now on it belongs to the database."""
        self.url = url
        self.direct_url = direct_url or url
        """For what does not work through a pooler in transaction mode: LISTEN and the worker's lock."""
        self.where = describe(url)
        self._role = role
        self._patience = patience  # seconds that a call waits for a connection
        self._revive = revive  # starts an embedded server that died under us; raises a domain error if it cannot
        self._pool_size = pool_size
        self._made: ConnectionPool[KeptConnection] | None = None
        self._closed = False
        self._process = os.getpid()
        self._making = threading.Lock()
        self._lock = threading.Lock()
        self._at_hand = first
        """A spare connection, used before the pool. Without it, P3 is 1.98 × the floor instead of 1.79 (of 2.00)."""
        if first:
            first.pooled_again = time.monotonic() + _AT_HAND
        self._lent: set[KeptConnection] = set()
        """Connections in use."""
        self._renewed_at = 0.0
        """When (monotonic) the server was last found to be replaced or back; older connections are dropped."""
        self._asking = 0
        """How many callers wait for a connection of the pool; ``close`` adds one, so that no spare one is kept."""
        self.repeats = 0
        """How many calls were repeated, because another session was in their way or their connection broke."""

    def run(self, function: Callable[..., Result], /, *args: Any, idempotent: bool = False, **kwargs: Any) -> Result:
        """Return ``function(connection, *args, **kwargs)``, repeated while PostgreSQL says that it changed nothing.

        ``idempotent`` says that the call may also be repeated if the connection broke and the outcome is unknown.
        """
        try:
            for attempt in range(_ATTEMPTS):
                last = attempt == _ATTEMPTS - 1
                connection = self._take()
                try:
                    return function(connection, *args, **kwargs)
                except psycopg.Error as error:
                    if not is_unchanged(error):
                        if not connection.closed:
                            raise
                        if not idempotent:
                            raise self._outcome_unknown(error) from error
                    if last:
                        raise
                finally:
                    self._give_back(connection)
                with self._lock:
                    self.repeats += 1
                time.sleep(_pause(attempt))
        except pg.ProgramLimitExceeded as error:
            raise self._about_limit(error) from error
        except psycopg.Error as error:
            raise domain_error(error, self.where) from error
        raise AssertionError("the last attempt returns or raises")

    def load(self) -> PoolLoad:
        """Return how busy its connections are."""
        with self._lock:
            return PoolLoad(len(self._lent), self._pool_size, self._asking)

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection]:
        """Lend an autocommit connection for several reads; nothing is repeated."""
        with translated(self.where):
            connection = self._take()
            try:
                yield connection
            finally:
                self._give_back(connection)

    def renew(self) -> None:
        """Use no connection made before now: the server was replaced, and the old one may be silent for ever.

        Statements in flight have a few seconds left, and are then given up.
        """
        with self._lock:
            self._renewed_at = time.monotonic()
            lent = list(self._lent)
        for connection in lent:
            connection.hurry()

    def close(self) -> None:
        """Close every connection; idempotent. A forked process leaves them to the one that made them."""
        if os.getpid() != self._process:
            return
        with self._making:
            self._closed = True
            if self._made:
                self._made.close()
        while connection := self._from_hand():
            self._put_away(connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self) -> KeptConnection:
        """Take a living connection: the one at hand, or one from the pool."""
        require_process(self._process)
        while connection := self._from_hand():
            if self._is_good(connection):
                return self._lend(connection)
            connection.close()
            self._put_away(connection)
        try:
            return self._lend(self._from_pool())
        finally:
            with self._lock:
                self._asking -= 1

    def _lend(self, connection: KeptConnection) -> KeptConnection:
        with self._lock:
            self._lent.add(connection)
        return connection

    def _is_good(self, connection: KeptConnection) -> bool:
        fresh = connection.made_at > self._renewed_at and not connection.is_outdated
        return fresh and is_alive(connection)

    def _give_back(self, connection: KeptConnection) -> None:
        """Keep this connection at hand if no other is, and if nobody waits for the pool; else give it to the pool."""
        idle = connection.pgconn.transaction_status == TransactionStatus.IDLE
        fresh = time.monotonic() < connection.pooled_again
        # Critical section: a caller that finds none at hand is counted in the same moment, and then gets it from the
        # pool.
        with self._lock:
            self._lent.discard(connection)
            kept = idle and fresh and self._at_hand is None and not self._asking
            if kept:
                self._at_hand = connection
        if not kept:
            self._put_away(connection)

    def _put_away(self, connection: KeptConnection) -> None:
        """Give it to the pool; close the first one, which does not belong to the pool."""
        if connection.is_pooled:
            self._pool.putconn(connection)
        else:
            connection.close()

    @property
    def _pool(self) -> ConnectionPool[KeptConnection]:
        """The pool, made when a connection is wanted and none is at hand: most commands need only the first."""
        with self._making:
            if self._made is None:
                self._made = open_pool(self.url, role=self._role, size=self._pool_size)
                if self._closed:
                    self._made.close()
            return self._made

    def _from_hand(self) -> KeptConnection | None:
        """Return the connection at hand; without one, others give theirs back to the pool from now on."""
        with self._lock:
            connection, self._at_hand = self._at_hand, None
            self._asking += connection is None
        return connection

    def _from_pool(self) -> KeptConnection:
        """Take a living connection from the pool, waiting as long as the patience lasts."""
        pool = self._pool
        from psycopg_pool import PoolClosed, PoolTimeout  # with the pool

        deadline = time.monotonic() + self._patience
        answered = False  # whether the server answered after the patience had ended
        while True:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                if answered:
                    raise self._busy()
                # The pool does not say why it gave nothing. If the server is back, it may give something now.
                connect(self.url, role=self._role).close()
                answered, deadline = True, time.monotonic() + _ASK_AGAIN
                continue
            try:
                # In slices: the pool makes a new attempt to connect on a request, not during a wait.
                connection = pool.getconn(timeout=min(_ASK_AGAIN, remaining))
            except PoolTimeout:
                self._start_again()
                continue
            except PoolClosed:
                raise DatabaseUnreachable(
                    f"This program has closed its connections to the database {self.where}.",
                    hint="Use a mesh before its `with` block ends.",
                ) from None
            if self._is_good(connection) and _is_led_right(connection):
                connection.pooled_again = time.monotonic() + _AT_HAND
                return connection
            connection.close()
            pool.putconn(connection)

    def _start_again(self) -> None:
        """Start the embedded server if it has died. If that fails (a full disk), the database is away, as any other."""
        if self._revive:
            try:
                self._revive()
            except EmbeddedServerError as error:
                raise DatabaseUnreachable(error.message, hint=error.hint) from error

    def _busy(self) -> DatabaseError:
        return DatabaseError(
            f"No connection to the database {self.where} became free within {self._patience:g} s.",
            hint="Statements hang: look at pg_stat_activity; or raise the size of the pool.",
        )

    def _about_limit(self, error: psycopg.Error) -> AgentmeshError:
        """Name the process to end if the server's queue of notifications has reached its limit."""
        with translated(self.where), connect(self.url, role=self._role) as connection:
            queue = notify_queue.look(connection)
        if queue.used < notify_queue.NEARLY_FULL:
            return domain_error(error, self.where)
        return DatabaseBusy(f"The database {self.where} takes no changes: {queue.words}.", hint=queue.hint)

    def _outcome_unknown(self, error: psycopg.Error) -> DatabaseUnreachable:
        return DatabaseUnreachable(
            f"{domain_error(error, self.where).message.rstrip('.')}. Whether the last change was made is unknown.",
            hint="Look before you repeat it.",
        )


def require_process(opened_by: int) -> None:
    """Raise UsageError in a process that was forked from the one that opened the mesh."""
    if os.getpid() != opened_by:  # two processes that write to one socket get each other's answers
        raise UsageError(
            "This process was forked from the one that opened the mesh, and cannot use its connections.",
            hint="Open a mesh here, or start processes by spawn.",
        )


def _is_led_right(connection: KeptConnection) -> bool:
    """Return whether a pooler still leads to the database; a direct connection cannot be led elsewhere."""
    if is_direct(connection) or time.monotonic() < connection.admitted_at + _AT_HAND:
        return True
    try:
        connection.admit_again()
    except (ServerReplaced, psycopg.OperationalError):
        return False
    return True


def is_unchanged(error: psycopg.Error) -> bool:
    """Return whether PostgreSQL undid the statement because of another session, so that it may be repeated."""
    return isinstance(error, _UNCHANGED) or (isinstance(error, pg.InternalError_) and _MULTIXACT in str(error))


def _pause(attempt: int) -> float:
    """Return the seconds to wait after a failed attempt, counted from 0."""
    return _FIRST_PAUSE * 2.0**attempt * random.uniform(0.5, 1.0)  # noqa: S311  spreads load, keeps no secret
