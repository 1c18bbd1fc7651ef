"""How many calls a process makes at once to one provider: small servers answer many at once slowly."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterator

from agentmesh.domain.cancel import Cancel


class Slots:
    """Slots of a provider, given out in the order in which calls come; thread-safe. Without a number, any many."""

    def __init__(self, number: int | None) -> None:
        self._free = number
        self._lock = threading.Lock()
        self._waiting: deque[threading.Event] = deque()

    @contextlib.contextmanager
    def one(self, cancel: Cancel) -> Iterator[bool]:
        """Hold a slot within the block, once one is free; yield False without one if ``cancel`` is set first."""
        if self._free is None:
            yield True
            return
        turn = threading.Event()
        with self._lock:
            self._waiting.append(turn)
            self._give()
        forget = cancel.on_set(turn.set)
        turn.wait()
        forget()
        with self._lock:
            # A slot that was given at the moment of the cancel is held, and goes back below.
            has_slot = turn not in self._waiting
            if not has_slot:
                self._waiting.remove(turn)
        try:
            yield has_slot
        finally:
            if has_slot:
                with self._lock:
                    self._free += 1
                    self._give()

    def _give(self) -> None:
        """Give free slots to the calls that have waited longest; the caller holds the lock."""
        while self._waiting and self._free:
            self._free -= 1
            self._waiting.popleft().set()
