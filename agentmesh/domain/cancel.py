"""A cancellation that reaches into blocking calls: sockets, processes, pauses."""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import StrEnum


class CancelReason(StrEnum):
    """Why an agent's work is stopped."""

    INTERRUPT = "interrupt"
    """A person pressed Esc: the partial answer is kept."""
    KILL = "kill"
    """The agent is dead: nothing more is written."""
    FENCED = "fenced"
    """Another worker owns the agent: nothing more is written."""
    STOP = "stop"
    """This worker stops: the agent is handed over."""
    OVER = "over"
    """The run is over: a command in the background ends with it."""
    SILENT = "silent"
    """The model of a sub-agent was silent for too long: its task ends."""


class Cancel:
    """A one-way switch with callbacks; thread-safe. The first reason stays, except that kill and fenced override."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._reason: CancelReason | None = None
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._next = 0

    @property
    def reason(self) -> CancelReason | None:
        """Why it was set, or None."""
        return self._reason

    def is_set(self) -> bool:
        """Whether the work should stop."""
        return self._event.is_set()

    def set(self, reason: CancelReason) -> None:
        """Stop the work: run every callback once, in the caller's thread."""
        # Critical section: choose the reason and take the callbacks; they run outside because they may block.
        with self._lock:
            if self._reason is None or reason in (CancelReason.KILL, CancelReason.FENCED):
                self._reason = reason
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
            self._event.set()
        for callback in callbacks:
            callback()

    def on_set(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` when set (at once if it is already); return a function that removes it."""
        with self._lock:
            if not self._event.is_set():
                key = self._next
                self._next += 1
                self._callbacks[key] = callback
                return lambda: self._remove(key)
        callback()
        return lambda: None

    def _remove(self, key: int) -> None:
        with self._lock:
            self._callbacks.pop(key, None)

    def wait(self, seconds: float) -> bool:
        """Sleep up to ``seconds``; return True as soon as it is set."""
        return self._event.wait(seconds)
