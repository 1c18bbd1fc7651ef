"""Connections to one provider: an SDK client for each, which any thread can cut.

httpx reports the socket of a request when it connects, through its ``trace`` extension. When a request reuses an open
connection, httpx reports nothing. So each client has one connection and remembers its socket. A pool shared by all
calls would also check every idle connection at the beginning and the end of every call.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from functools import partial

import httpx2

from agentmesh.llm.exchange import start_thread
from agentmesh.llm.failure import AttemptFailed
from agentmesh.llm.sdk import openai

_LONGEST_REFUSAL = 256 * 1024
"""Bytes of an error's body that are read; the body may have no end."""
_TELEMETRY = b"x-stainless-"
Hooks = Mapping[str, list[Callable[..., None]]]
Send = Callable[[openai.OpenAI], httpx2.Response]


class ErrorResponse(Exception):
    """The server answered with an error status."""

    def __init__(self, response: httpx2.Response) -> None:
        """Read the beginning of the body."""
        super().__init__(response.status_code)
        self.response = response
        self.body = _beginning(response)


class ModelConnection:
    """One SDK client with one connection, for one call at a time. Any thread may ``cut`` it."""

    def __init__(self, connect: Callable[[Hooks], openai.OpenAI], name: str) -> None:
        """``connect`` makes the client with these event hooks; ``name`` is for threads."""
        self._name = name
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        """The socket that the SDK uses; None before the first connection."""
        self._twins: list[socket.socket] = []
        """Our duplicates of the sockets. The SDK cannot close them, and a TLS handshake does not detach them."""
        self._opening: Future[httpx2.Response] | None = None
        self._connected: Callable[[], None] = lambda: None
        self._is_cut = False
        self._is_closed = False
        self._client = connect({"request": [self._prepare], "response": [_refuse]})

    @property
    def is_cut(self) -> bool:
        """Whether no call may use the connection any more."""
        return self._is_cut

    def ask(self, send: Send, connected: Callable[[], None]) -> httpx2.Response:
        """Send a request; return the answer once its head has arrived.

        ``connected`` is called before the request leaves. A connection opens in a thread of its own, because nothing
        can interrupt a name resolution or a ``connect``. Raise ConnectTimeout or ReadTimeout if it is cut meanwhile.
        """
        self._connected = connected
        if self._is_open():
            return send(self._client)
        self._let_go()
        opening = Future[httpx2.Response]()
        with self._lock:
            if self._is_cut:
                raise httpx2.ConnectTimeout("no connection in time")
            self._opening = opening
        try:
            start_thread(partial(self._open, send, opening), f"connect {self._name}")
        except AttemptFailed:
            with self._lock:
                self._opening = None
            raise
        try:
            return opening.result()
        except CancelledError:
            kind = httpx2.ConnectTimeout if self._socket is None else httpx2.ReadTimeout
            raise kind("no connection in time") from None

    def cut(self) -> None:
        """Make every read and write fail, and stop waiting for a connection that is being opened."""
        with self._lock:
            self._is_cut = True
            self._shut_down()
            if self._opening is not None:
                self._opening.cancel()

    def rest(self) -> None:
        """Release our duplicates of a socket that the SDK has closed; otherwise the server would not see its end."""
        if self._socket is not None and self._socket.fileno() < 0:
            self._let_go()

    def close(self) -> None:
        """Close the connection; if it is still opening, the opening thread closes it at its end."""
        with self._lock:
            self._is_closed = True
            if self._opening is not None:
                return
        self._client.close()
        self._let_go()

    def _open(self, send: Send, opening: Future[httpx2.Response]) -> None:
        response: httpx2.Response | None = None
        failure: BaseException | None = None
        try:
            response = send(self._client)
        except BaseException as error:  # noqa: BLE001  the top frame of a thread; the caller raises it
            failure = error
        with self._lock:
            self._opening = None
            is_closed = self._is_closed
        if opening.set_running_or_notify_cancel():
            if response is None:
                opening.set_exception(failure)
            else:
                opening.set_result(response)
        elif response is not None:
            response.close()
        if is_closed:
            self.close()

    def _is_open(self) -> bool:
        """Whether the next request can use the last one's connection; after the server hung up, it is readable."""
        if self._socket is None or self._socket.fileno() < 0:
            return False
        readable = select.poll()
        readable.register(self._socket, select.POLLIN)
        return not readable.poll(0)

    def _let_go(self) -> None:
        with self._lock:
            twins, self._twins, self._socket = self._twins, [], None
        for twin in twins:
            twin.close()

    def _shut_down(self) -> None:
        for twin in self._twins:
            with contextlib.suppress(OSError):  # no longer connected
                twin.shutdown(socket.SHUT_RDWR)

    def _prepare(self, request: httpx2.Request) -> None:
        """Ask for the socket, and remove the headers in which the SDK describes this machine to its vendor."""
        request.extensions["trace"] = self._trace
        request.headers = httpx2.Headers(
            [(name, value) for name, value in request.headers.raw if not name.lower().startswith(_TELEMETRY)]
        )

    def _trace(self, event: str, info: Mapping[str, object]) -> None:
        """Remember the socket of a new connection. httpx reports each step of a request here."""
        if event.endswith(".send_request_headers.started"):
            self._connected()
        if not event.startswith("connection.") or not event.endswith(".complete"):
            return
        describe = getattr(info.get("return_value"), "get_extra_info", None)
        if describe is None:  # no network stream: an event of some other release
            return
        found: socket.socket = describe("socket")
        with self._lock:
            self._socket = found
            if not isinstance(found, ssl.SSLSocket):  # TLS uses the same connection, which already has its twin
                self._twins.append(found.dup())
            if self._is_cut:
                self._shut_down()


class Connections:
    """Connections that wait for their next call, the most recent one first; thread-safe."""

    def __init__(self, make: Callable[[], ModelConnection], keep: float) -> None:
        """Connections unused for ``keep`` seconds are closed when another one is given back."""
        self._make = make
        self._keep = keep
        self._lock = threading.Lock()
        self._idle: deque[tuple[float, ModelConnection]] = deque()
        """Each with the time when it was given back; the oldest first."""
        self._closed = False

    def take(self) -> ModelConnection:
        """Return a connection for one call; end the call with ``give_back``."""
        oldest = time.monotonic() - self._keep
        with self._lock:
            if self._idle and self._idle[-1][0] >= oldest:
                return self._idle.pop()[1]
        return self._make()

    def give_back(self, connection: ModelConnection) -> None:
        """Let other calls use a connection."""
        connection.rest()
        now = time.monotonic()
        unwanted = []
        with self._lock:
            if connection.is_cut:
                unwanted.append(connection)
            else:
                self._idle.append((now, connection))
            while self._idle and (self._closed or self._idle[0][0] < now - self._keep):
                unwanted.append(self._idle.popleft()[1])
        for old in unwanted:
            old.close()

    def close(self) -> None:
        """Close all connections; one in use is closed when it is given back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, deque()
        for _, connection in idle:
            connection.close()


def _refuse(response: httpx2.Response) -> None:
    if not response.is_success:
        raise ErrorResponse(response)


def _beginning(response: httpx2.Response) -> str:
    pieces, size = [], 0
    for piece in response.iter_bytes():
        pieces.append(piece)
        size += len(piece)
        if size >= _LONGEST_REFUSAL:
            break
    raw = b"".join(pieces)[:_LONGEST_REFUSAL]
    try:
        return raw.decode(response.encoding or "utf-8", "replace")
    except (LookupError, ValueError):  # base64 and idna are codecs too, but not for text
        return raw.decode("utf-8", "replace")
