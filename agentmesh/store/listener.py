"""The one LISTEN connection of the process, and its thread, which hears for everybody and reconnects by itself.

A notification is a hint, never the truth: a thread that it wakes reads the rows. Nothing is lost if LISTEN and its
commit come first, then the first look, and only then the wait. So ``listen`` returns after the commit, and after a
reconnect ``on_reconnect`` makes everybody look again. A silent peer is found by an echo: the connection notifies
itself, and is replaced if it does not hear that.
"""

from __future__ import annotations

import random
import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Final, Self

import psycopg

from agentmesh.domain.errors import AgentmeshError, DatabaseError, DatabaseUnreachable, ServerReplaced
from agentmesh.domain.log import logger
from agentmesh.domain.loop import Died, Loop, log_death
from agentmesh.store.deadline import BoundedConnection
from agentmesh.store.errors import domain_error
from agentmesh.store.link import Link, Pulse
from agentmesh.store.pool import configure, connection_string, describe, require_own_session
from agentmesh.store.subscriptions import Subscriptions

LOG = logger(__name__)

_ROLE: Final = "listener"
_MAX_NAME: Final = 63
"""Bytes of a channel's name. LISTEN silently cuts longer names, and then nothing is ever heard."""
_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 2.0
_JOIN_SECONDS: Final = 6.0
"""Longer than a connect may take; nothing else keeps the thread from seeing that it must stop."""


def _nothing() -> None:
    """Do nothing, where a test may listen."""


@dataclass(slots=True)
class Signals:
    """Moments that tests wait for instead of sleeping. They are called on the listener's thread."""

    lost: Callable[[], None] = _nothing
    listening: Callable[[], None] = _nothing
    """Called when everything wanted is active, at the start and after each reconnect."""


class Listener:
    """Hears channels on one connection and calls back on its own thread. Callbacks must be quick."""

    def __init__(
        self,
        url: str,
        *,
        on_notify: Callable[[str, str], None],
        on_reconnect: Callable[[], None],
        setup: Callable[[psycopg.Connection], None] | None = None,
        pulse: Pulse | None = None,
    ) -> None:
        self.signals = Signals()
        self.failed: AgentmeshError | None = None
        """Why it hears nothing right now; None while it listens."""
        self._url = url
        self._where = describe(url)
        self._on_notify = on_notify
        self._on_reconnect = on_reconnect
        self._setup = setup  # called first on every new connection; a worker takes its lock in it
        self._pulse = pulse or Pulse()
        self._subscriptions = Subscriptions()
        self._echo_channel = f"agentmesh_echo_{secrets.token_hex(8)}"
        self._subscriptions.want([self._echo_channel])
        self._thread: threading.Thread | None = None
        self._started = False
        self._first_outcome = threading.Event()
        self._stopping = threading.Event()
        self._unwanted = threading.Event()
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.setblocking(False)
        self._wake_writer.setblocking(False)

    def start(self, died: Died = log_death) -> None:
        """Connect, and listen to the channels that were asked for before; raise if that fails.

        ``died`` is called if an error ends the thread.
        """
        self._thread = Loop(self._run, "listener", died)
        self._thread.start()
        self._first_outcome.wait()
        if not self._started:
            self.stop()
            raise self.failed or DatabaseError("The listener has stopped.")

    def stop(self) -> None:
        """End the thread and its connection; idempotent."""
        self._stopping.set()
        self._subscriptions.close()
        self._wake()
        if self._thread and self._thread is not threading.current_thread():
            self._thread.join(_JOIN_SECONDS)
            if self._thread.is_alive():
                LOG.warning("thread %s did not stop within %s s", self._thread.name, _JOIN_SECONDS)
                return
        self._wake_reader.close()
        self._wake_writer.close()

    def listen(self, *channels: str, timeout: float = 15.0) -> None:
        """Hear the channels until ``unlisten``; return when PostgreSQL has committed the LISTEN.

        Calls are counted per channel; a call that raises does not count. Raise DatabaseUnreachable after ``timeout``
        seconds without a connection.
        """
        if any(len(channel.encode()) > _MAX_NAME for channel in channels):
            raise ValueError(f"a channel's name has at most {_MAX_NAME} bytes: {channels}")
        if self._thread is threading.current_thread():
            raise RuntimeError("listen() in a callback would wait for its own thread")
        ticket = self._subscriptions.want(channels)
        if self._thread is None or ticket.settled.is_set():
            return
        self._wake()
        is_settled = False
        try:
            is_settled = ticket.settled.wait(timeout)
        finally:  # also on an interrupt
            if not is_settled:
                self._subscriptions.abandon(ticket)
        if not is_settled:
            raise DatabaseUnreachable(f"The database {self._where} did not take a LISTEN for {timeout:g} s.")
        if ticket.refused:
            raise DatabaseError("The listener has stopped.")

    def unlisten(self, *channels: str) -> None:
        """Take back one ``listen`` of each channel; notifications under way may still be heard."""
        if self._subscriptions.unwant(channels):
            self._wake()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def reconnect(self) -> None:
        """Give up the connection and make a new one, on which ``setup`` is called again; return at once."""
        self._unwanted.set()
        self._wake()

    def _wake(self) -> None:
        with suppress(OSError):  # full: it will wake anyway; closed: it has stopped
            self._wake_writer.send(b"\0")

    def _run(self) -> None:
        pause = _FIRST_PAUSE
        while not self._stopping.is_set():
            try:
                self._listen_until_lost()
            except Exception as error:  # noqa: BLE001  top frame of the thread: whatever happened, it listens again
                if self.failed is None:
                    pause = _FIRST_PAUSE
                self._note_loss(error)
            if not self._started:
                break
            self._stopping.wait(pause * random.uniform(0.5, 1.0))  # noqa: S311  spreads load, keeps no secret
            pause = min(pause * 2, _LONGEST_PAUSE)
        self._first_outcome.set()

    def _listen_until_lost(self) -> None:
        """Use one connection until it is lost; return only in order to stop."""
        self._unwanted.clear()
        with closing(self._connect()) as connection:
            link = Link(connection, self._wake_reader, self._subscriptions, self._hear, self._echo_channel, self._pulse)
            with closing(link):
                while not self._stopping.is_set() and not link.is_whole:
                    link.step()
                self._announce()
                while not self._stopping.is_set():
                    if self._unwanted.is_set():
                        raise DatabaseError("The connection was given up.")
                    if connection.is_outdated:
                        raise DatabaseUnreachable(f"The database {self._where} has a newer primary.")
                    link.step()

    def _connect(self) -> BoundedConnection:
        connection = BoundedConnection.connect(connection_string(self._url, role=_ROLE), autocommit=True)
        try:
            self._refuse_transaction_pooler(connection)
            if self._setup:
                self._setup(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _refuse_transaction_pooler(self, connection: psycopg.Connection) -> None:
        if not configure(connection):
            require_own_session(connection, self._url, role=_ROLE)

    def _announce(self) -> None:
        """Say that everything wanted is heard (again)."""
        if self._stopping.is_set():
            return
        self.failed = None
        if self._started:
            LOG.warning("the database %s answers again", self._where)
            self._call(self._on_reconnect)
        self._started = True
        self._first_outcome.set()
        self.signals.listening()

    def _hear(self, channel: str, payload: str) -> None:
        self._call(self._on_notify, channel, payload)

    def _call(self, callback: Callable[..., None], *args: Any) -> None:
        try:
            callback(*args)
        except Exception:  # the frame between two programs: a fault of one listener must not deafen the others
            LOG.exception("callback %r failed for %r", callback, args)

    def _note_loss(self, error: Exception) -> None:
        is_new = self.failed is None or isinstance(error, ServerReplaced) > isinstance(self.failed, ServerReplaced)
        is_news = self._started and is_new  # before the start, the caller is told
        if isinstance(error, psycopg.Error):
            self.failed = domain_error(error, self._where)
        elif isinstance(error, AgentmeshError):
            self.failed = error
        else:
            LOG.error("listener of the database %s failed", self._where, exc_info=error)
            self.failed = DatabaseError(f"The listener of the database {self._where} failed: {error!r}")
        if is_news:
            LOG.warning("connecting again: %s", self.failed)
        self._subscriptions.disconnected()
        self.signals.lost()
