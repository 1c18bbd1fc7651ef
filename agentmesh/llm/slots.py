"""How many calls a process makes at once to one provider: small servers answer many at once slowly."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Final

from agentmesh.llm.pauses import Visit

_LONG: Final = 1.0
"""Seconds of waiting for a slot after which limits are looked at again."""


class Slots:
    """Slots of a provider, given out in the order in which calls come; thread-safe. Without a number, any many."""

    def __init__(self, provider: str, number: int | None) -> None:
        self._provider = provider
        self._free = number
        self._lock = threading.Lock()
        self._waiting: deque[threading.Event] = deque()

    @contextlib.contextmanager
    def one(self, visit: Visit) -> Iterator[bool]:
        """Hold a slot within the block, once one is free; yield False without one if the call is cancelled first.

        Raise CallFailed if limits end the call while it waits.
        """
        if self._free is None:
            yield True
            return
        turn = threading.Event()
        with self._lock:
            self._waiting.append(turn)
            self._give()
        has_slot = False
        try:
            try:
                self._wait(turn, visit)
            finally:
                has_slot = self._leave(turn)
            yield has_slot
        finally:
            if has_slot:
                with self._lock:
                    self._free += 1
                    self._give()

    def _wait(self, turn: threading.Event, visit: Visit) -> None:
        forget = visit.cancel.on_set(turn.set)
        try:
            if not turn.wait(_LONG):
                visit.waited = True
                visit.watch.queued(self._provider)
                while not turn.wait(max(visit.allowed - time.monotonic(), 0.0)):
                    visit.ask()
        finally:
            forget()

    def _leave(self, turn: threading.Event) -> bool:
        """Leave the queue; return whether a slot was given, if only at the moment of a cancel: it must go back."""
        with self._lock:
            has_slot = turn not in self._waiting
            if not has_slot:
                self._waiting.remove(turn)
            return has_slot

    def _give(self) -> None:
        """Give free slots to the calls that have waited longest; the caller holds the lock."""
        while self._waiting and self._free:
            self._free -= 1
            self._waiting.popleft().set()
