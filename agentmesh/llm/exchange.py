"""One HTTP exchange; a cancellation or a deadline can end it from another thread."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Protocol, Self

from agentmesh.domain.cancel import Cancel
from agentmesh.llm.failure import AttemptFailed

_TICK = 0.1
"""Seconds that an exchange may outlive its deadline."""


def start_thread(work: Callable[[], None], name: str) -> None:
    """Run this beside the call; raise AttemptFailed, to try again, if the system gives no thread."""
    try:
        threading.Thread(target=work, name=name, daemon=True).start()
    except RuntimeError as error:
        raise AttemptFailed(
            "server",
            f"This machine has no thread left for a model call: {error}.",
            hint="Raise its limit of processes, or run fewer agents at once.",
            retry=True,
        ) from error


class Breakable(Protocol):
    """A connection that any thread may break."""

    def cut(self) -> None:
        """Make every read and write of the connection fail."""
        ...


class Exchange:
    """One exchange of the current thread, which begins and ends with its ``with`` block."""

    def __init__(self, cancel: Cancel, seconds: float, setting: str = "") -> None:
        """``seconds``: time from the request to the beginning of its answer, as ``setting`` says."""
        self.seconds = seconds
        self.setting = setting
        """Name of the setting that gave the deadline, for advice; empty if none did."""
        self._cancel = cancel
        self._lock = threading.Lock()
        self._connection: Breakable | None = None
        self.timed_out = False
        """Whether the deadline ended the exchange."""
        self.allow(seconds)

    def __enter__(self) -> Self:
        _DEADLINES.add(self)
        self._take_back = self._cancel.on_set(self._cut)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._take_back()
        _DEADLINES.remove(self)

    @property
    def cancelled(self) -> bool:
        """Whether the exchange should stop."""
        return self._cancel.is_set()

    def allow(self, seconds: float, setting: str = "") -> None:
        """Set the deadline to ``seconds`` from now, as ``setting`` says if another one does. It runs for each token."""
        self._deadline = time.monotonic() + seconds
        self.setting = setting or self.setting

    @contextlib.contextmanager
    def using(self, connection: Breakable) -> Iterator[None]:
        """Let a cancellation or the deadline cut ``connection`` while the block runs."""
        self._use(connection)
        try:
            yield
        finally:
            self._use(None)

    def check(self, now: float) -> None:
        """End the exchange if its deadline has passed. Runs in the thread of the deadlines."""
        if now >= self._deadline:
            self.timed_out = True
            self._cut()

    def _use(self, connection: Breakable | None) -> None:
        # Critical section: either _cut sees the connection, or it ran before and one of the flags is set here.
        with self._lock:
            self._connection = connection
            if connection is not None and (self.timed_out or self._cancel.is_set()):
                connection.cut()

    def _cut(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.cut()


class _Deadlines:
    """Ends exchanges at their deadlines. One thread watches all of them, and sleeps while there are none.

    httpx takes one read timeout for a whole answer. An answer needs several: until its first token, between tokens, and
    after its last.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._exchanges: set[Exchange] = set()
        self._is_running = False
        self._is_asleep = False

    def add(self, exchange: Exchange) -> None:
        """Watch an exchange."""
        with self._changed:
            if not self._is_running:
                start_thread(self._run, "deadlines")
                self._is_running = True
            self._exchanges.add(exchange)
            if self._is_asleep:
                self._changed.notify()

    def remove(self, exchange: Exchange) -> None:
        """Stop watching an exchange."""
        with self._changed:
            self._exchanges.discard(exchange)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._exchanges:
                    self._is_asleep = True
                    self._changed.wait()
                self._is_asleep = False
                exchanges = tuple(self._exchanges)
            now = time.monotonic()
            for exchange in exchanges:
                exchange.check(now)
            time.sleep(_TICK)


_DEADLINES = _Deadlines()
