"""One LISTEN connection, driven through libpq's asynchronous calls. Only ``wait`` waits, and never for ever.

psycopg's own ``execute`` waits for its answer as long as it takes. On a connection whose peer fell silent that is for
ever. Here a command is sent, and its end is noticed among the notifications; the caller keeps the deadlines.
"""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable
from contextlib import suppress

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus

_DONE = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK, ExecStatus.EMPTY_QUERY)


class Wire:
    """A connection with at most one command under way, used by one thread."""

    def __init__(
        self, connection: psycopg.Connection, wake: socket.socket, on_notify: Callable[[str, str], None]
    ) -> None:
        self.busy = False
        """Whether a command is under way."""
        self._libpq = connection.pgconn
        self._wake = wake
        self._on_notify = on_notify
        self._selector = selectors.DefaultSelector()  # not select.select, which fails above descriptor 1,023
        self._selector.register(self._libpq.socket, selectors.EVENT_READ)
        self._selector.register(wake, selectors.EVENT_READ)
        # What came during earlier commands is in psycopg's backlog, and the socket will not tell of it.
        for notification in connection.notifies(timeout=0):
            on_notify(notification.channel, notification.payload)

    def send(self, command: bytes) -> None:
        """Start a command of one or more statements, which are one transaction."""
        self._libpq.send_query(command)
        self.busy = True
        self._flush()

    def wait(self, timeout: float) -> None:
        """Wait until something arrives, another thread writes to the wake-up socket, or the time is over."""
        ready = self._selector.select(max(timeout, 0.0))
        if any(key.fileobj is self._wake for key, _ in ready):
            with suppress(BlockingIOError):
                self._wake.recv(4096)
        if self.busy:
            self._flush()

    def receive(self) -> None:
        """Take in what has arrived; raise psycopg's error if the connection or the command failed."""
        self._libpq.consume_input()
        failure = None
        while self.busy and not self._libpq.is_busy():
            result = self._libpq.get_result()
            if result is None:
                self.busy = False
            elif result.status not in _DONE:
                failure = error_from_result(result)
        while notification := self._libpq.notifies():
            self._on_notify(
                notification.relname.decode("utf-8", "replace"), notification.extra.decode("utf-8", "replace")
            )
        if failure:
            raise failure

    def close(self) -> None:
        """Close the selector; the connection is the caller's."""
        self._selector.close()

    def _flush(self) -> None:
        unsent = self._libpq.flush() == 1
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if unsent else 0)
        if self._selector.get_key(self._libpq.socket).events != events:
            self._selector.modify(self._libpq.socket, events)
