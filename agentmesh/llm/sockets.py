"""Connections that a Cancel can end at any moment: while connecting, in the TLS handshake, sending, reading.

Imports httpcore2, so it is itself imported only with the wire.
"""

from __future__ import annotations

import contextlib
import functools
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterable

import httpcore2

from agentmesh.llm.exchange import current

_DIALS = 3
"""A name may stand for several addresses, each tried for the connect timeout."""
_LONGEST_POLL = 2**31 - 1
"""Milliseconds; the system takes no more."""


class _Stream(httpcore2.NetworkStream):
    """A connection that tells the exchange of the calling thread when it blocks, and obeys its time limit."""

    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self._inner = inner
        self._socket: socket.socket = inner.get_extra_info("socket")
        self._unsent: list[bytes] = []
        self._ready: select.poll | None = None
        """Tells when there is something to read; None for TLS, which may have read more than it has given."""
        if type(self._socket) is socket.socket:
            # Else each read and each write would set its limit, wait and then act: three system calls, of which each
            # gives the interpreter's lock away.
            self._socket.setblocking(False)
            self._ready = select.poll()
            self._ready.register(self._socket, select.POLLIN)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._unsent:
            self._flush(timeout)
        exchange = current()
        if exchange is None:
            return self._inner.read(max_bytes, timeout)
        exchange.block_on(self._socket)
        try:
            if self._ready is None:
                return self._inner.read(max_bytes, exchange.remaining())
            if not self._ready.poll(min(exchange.remaining() * 1000, _LONGEST_POLL)):
                raise httpcore2.ReadTimeout("timed out")
            return self._socket.recv(max_bytes)
        except OSError as error:
            raise httpcore2.ReadError(error) from error
        finally:
            exchange.unblock()

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # Head and body of a request leave together, so that the server wakes once for them. An empty write ends one.
        self._unsent.append(buffer)
        if not buffer:
            self._flush(timeout)

    def _flush(self, timeout: float | None) -> None:
        unsent = b"".join(self._unsent)
        self._unsent.clear()
        exchange = current()
        if exchange is None:
            self._inner.write(unsent, timeout)
            return
        exchange.block_on(self._socket)
        try:
            if self._ready is not None:
                with contextlib.suppress(OSError):  # for want of room; what else is wrong, the next one says
                    unsent = unsent[self._socket.send(unsent) :]
            self._inner.write(unsent, timeout)
        finally:
            exchange.unblock()

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        # The handshake takes the socket away from its object, so a second one for the same connection is watched.
        exchange = current()
        if exchange is None:
            return _Stream(self._inner.start_tls(ssl_context, server_hostname, timeout))
        with contextlib.closing(self._socket.dup()) as twin:
            exchange.block_on(twin)
            try:
                return _Stream(self._inner.start_tls(ssl_context, server_hostname, timeout))
            finally:
                exchange.unblock()

    def get_extra_info(self, info: str) -> object:
        return self._inner.get_extra_info(info)


class _Dial:
    """One attempt to connect, in a thread of its own: neither name resolution nor connect() can be interrupted."""

    def __init__(self, connect: Callable[[], httpcore2.NetworkStream]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._abandoned = False
        self._stream: httpcore2.NetworkStream | None = None
        self._error: Exception | None = None
        self.done = threading.Event()

    def run(self) -> None:
        """Connect; a connection that nobody waits for any more is closed."""
        stream: httpcore2.NetworkStream | None = None
        try:
            stream = self._connect()
        except Exception as error:  # noqa: BLE001  the top frame of a thread; take() raises it in the caller
            self._error = error
        # Critical section: the connection is either taken over by the caller or closed here.
        with self._lock:
            if not self._abandoned:
                self._stream = stream
                stream = None
        if stream is not None:
            stream.close()
        self.done.set()

    def take(self) -> httpcore2.NetworkStream:
        """Return the connection, or raise why there is none; nothing is waited for."""
        with self._lock:
            self._abandoned = True
        if self._stream is not None:
            return self._stream
        raise self._error or httpcore2.ConnectTimeout("no connection in time")


class CancellableBackend(httpcore2.SyncBackend):
    """Connects so that a cancellation ends the wait."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        connect = functools.partial(super().connect_tcp, host, port, timeout, local_address, socket_options)
        exchange = current()
        if exchange is None:
            return _Stream(connect())
        dial = _Dial(connect)
        with exchange.dialling(dial.done):
            threading.Thread(target=dial.run, name=f"connect {host}:{port}", daemon=True).start()
            dial.done.wait(None if timeout is None else timeout * _DIALS)
        return _Stream(dial.take())
