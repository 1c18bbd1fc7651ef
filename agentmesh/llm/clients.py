"""HTTP clients with a connection each, lent to one call at a time.

One client for all calls would do, but its pool looks at every idle connection, each time by a system call, whenever a
call begins and whenever one ends: with 20 agents that was 17 looks, and 0.1 to 0.2 ms of processor, for each call.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

import httpx2


class Clients:
    """Clients that wait for their next call, the one used last first; thread-safe."""

    def __init__(self, make: Callable[[], httpx2.Client], keep: float) -> None:
        """``keep``: seconds after which one that nobody has used is closed, when another is given back."""
        self._make = make
        self._keep = keep
        self._lock = threading.Lock()
        self._idle: deque[tuple[float, httpx2.Client]] = deque()
        """With the time since when; the oldest first."""
        self._closed = False

    def take(self) -> httpx2.Client:
        """Return a client for one call; ``give_back`` it."""
        with self._lock:
            if self._idle:
                return self._idle.pop()[1]
        return self._make()

    def give_back(self, client: httpx2.Client) -> None:
        """Let others have a client whose call has ended."""
        now = time.monotonic()
        unwanted = []
        with self._lock:
            self._idle.append((now, client))
            while self._idle and (self._closed or self._idle[0][0] < now - self._keep):
                unwanted.append(self._idle.popleft()[1])
        for old in unwanted:
            old.close()

    def close(self) -> None:
        """Close all: those in use when they are given back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, deque()
        for _, client in idle:
            client.close()
