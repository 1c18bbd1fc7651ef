"""One HTTP exchange as its Cancel sees it: what the thread blocks on now, and until when it may."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

from agentmesh.domain.cancel import Cancel

_current = threading.local()
_SHORTEST_WAIT = 0.001


class Exchange:
    """The exchange that the current thread is in, from its ``with`` on. Only :meth:`_stop` runs in other threads."""

    def __init__(self, cancel: Cancel, seconds: float) -> None:
        self._cancel = cancel
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._dialled: threading.Event | None = None
        self._take_back: Callable[[], None] | None = None
        self.allow(seconds)

    def __enter__(self) -> Self:
        _current.exchange = self
        self._take_back = self._cancel.on_set(self._stop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._take_back is not None:
            self._take_back()
        _current.exchange = None

    @property
    def cancelled(self) -> bool:
        """Whether the exchange should stop."""
        return self._cancel.is_set()

    def allow(self, seconds: float) -> None:
        """Let the reads from now on take so long together."""
        self._deadline = time.monotonic() + seconds

    def remaining(self) -> float:
        """Return the seconds left for the next read; never zero, which would mean not to block."""
        return max(self._deadline - time.monotonic(), _SHORTEST_WAIT)

    def block_on(self, sock: socket.socket) -> None:
        """Let a cancellation shut ``sock`` down, until ``unblock``."""
        self._watch(sock, None)

    def unblock(self) -> None:
        """Let a cancellation leave the socket alone."""
        self._watch(None, None)

    @contextlib.contextmanager
    def dialling(self, done: threading.Event) -> Iterator[None]:
        """Let a cancellation set ``done`` while the block runs."""
        self._watch(None, done)
        try:
            yield
        finally:
            self._watch(None, None)

    def _watch(self, sock: socket.socket | None, dialled: threading.Event | None) -> None:
        # Critical section: _stop sees what is blocked on now, or ran before; then is_set() is true here.
        with self._lock:
            self._socket, self._dialled = sock, dialled
            if self._cancel.is_set():
                self._wake()

    def _stop(self) -> None:
        with self._lock:
            self._wake()

    def _wake(self) -> None:
        if self._dialled is not None:
            self._dialled.set()
        if self._socket is not None:
            # SSLSocket.shutdown would take the TLS state away from under the reading thread; a shutdown of the bare
            # socket wakes it. A socket that is no longer connected needs no waking.
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


def current() -> Exchange | None:
    """Return the exchange that this thread is in."""
    exchange: Exchange | None = getattr(_current, "exchange", None)
    return exchange
