"""The life of one LISTEN connection, from its first command to its loss: what to send next, and when to expect what.

A peer can fall silent without closing the connection. So each command must be answered in time, and an empty one is
sent every two seconds. Now and then the connection notifies itself: such an echo proves that the path of every wake-up
works.
"""

from __future__ import annotations

import math
import secrets
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg import sql

from agentmesh.domain.errors import DatabaseUnreachable
from agentmesh.store.subscriptions import Batch, Subscriptions
from agentmesh.store.wire import Wire

_BATCH: Final = 1000
"""Channels per command: many, but few enough that no notification waits long behind it."""


def _untold(_seconds: float) -> None:
    """Do nothing with a round trip."""


@dataclass(frozen=True, slots=True)
class Pulse:
    """How a silent peer is noticed, in seconds."""

    every: float = 10.0
    """The time from one echo to the next."""
    within: float = 5.0
    """The time in which an echo, or the answer to any command, must come."""
    asked: float = 2.0
    """The time from one word of the server to the empty statement that asks for the next; it commits nothing."""
    told: Callable[[float], None] = _untold
    """Called on the listener's thread with the round trip of each echo; must be quick and raise nothing."""


class Link:
    """Keeps one connection listening to the wanted channels; used by one thread."""

    def __init__(
        self,
        connection: psycopg.Connection,
        wake: socket.socket,
        subscriptions: Subscriptions,
        hear: Callable[[str, str], None],
        echo_channel: str,
        pulse: Pulse,
    ) -> None:
        self.is_whole = False
        """Whether everything wanted has been active once, and an echo has come back since."""
        self._connection = connection
        self._subscriptions = subscriptions
        self._hear = hear
        self._echo_channel = echo_channel
        self._pulse = pulse
        self._batch: Batch | None = None
        self._answer_by = math.inf
        self._nonce = ""
        self._echo_due = 0.0
        self._echo_sent = 0.0
        self._echo_by = math.inf
        self._ask_due = math.inf
        self._wire = Wire(connection, wake, self._receive)

    def step(self) -> None:
        """Send what is due, wait for something and take it in; raise if the connection is lost or silent."""
        if not self._wire.busy:
            self._send_next()
        next_echo = math.inf if self._wire.busy or self._nonce else self._echo_due
        next_ask = math.inf if self._wire.busy else self._ask_due
        self._wire.wait(min(next_echo, next_ask, self._answer_by, self._echo_by) - time.monotonic())
        self._wire.receive()
        if not self._wire.busy and self._answer_by != math.inf:
            self._answer_by = math.inf
            self._ask_due = time.monotonic() + self._pulse.asked
            if self._batch:
                self._subscriptions.committed(self._batch)
                self._batch = None
        # The clock is read last: what arrived while this process was stopped counts as in time.
        if time.monotonic() > min(self._answer_by, self._echo_by):
            raise DatabaseUnreachable(f"The database fell silent: nothing came within {self._pulse.within:g} s.")

    def close(self) -> None:
        """Stop watching; the caller closes the connection."""
        self._wire.close()

    def _send_next(self) -> None:
        echo_is_due = not self._nonce and time.monotonic() >= self._echo_due
        # A new connection listens to everything first. Later, nothing may delay the echo.
        if self.is_whole and echo_is_due:
            self._send_echo()
        elif batch := self._subscriptions.next_batch(_BATCH):
            self._batch = batch
            self._send(b";".join(self._named(b"listen ", batch.listen) + self._named(b"unlisten ", batch.unlisten)))
        elif echo_is_due:
            self._send_echo()
        elif time.monotonic() >= self._ask_due:
            self._send(b"")

    def _send_echo(self) -> None:
        self._nonce = secrets.token_hex(8)
        self._echo_sent = time.monotonic()
        self._echo_by = self._echo_sent + self._pulse.within
        notify = sql.SQL("notify {}, {}").format(sql.Identifier(self._echo_channel), sql.Literal(self._nonce))
        self._send(notify.as_bytes(self._connection))

    def _send(self, command: bytes) -> None:
        self._answer_by = time.monotonic() + self._pulse.within
        self._wire.send(command)

    def _named(self, verb: bytes, channels: Iterable[str]) -> list[bytes]:
        return [verb + sql.Identifier(channel).as_bytes(self._connection) for channel in channels]

    def _receive(self, channel: str, payload: str) -> None:
        if channel != self._echo_channel:
            self._hear(channel, payload)
        elif payload == self._nonce:
            self._nonce = ""
            self._echo_by = math.inf
            now = time.monotonic()
            self._echo_due = now + self._pulse.every
            self.is_whole = True
            self._pulse.told(now - self._echo_sent)
