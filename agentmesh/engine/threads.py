"""A fixed number of threads that take work from a queue.

This is not ``ThreadPoolExecutor``, whose threads keep the process from ending, and whose shutdown waits without a
limit. A tool that hangs in the kernel must not keep a worker from handing over its agents and leaving.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

from agentmesh.domain.log import logger
from agentmesh.domain.loop import Died, Loop, log_death

LOG = logger(__name__)
_PATIENCE = 60.0
"""Seconds. A tool that makes many processes can use up the limit of threads for a while."""

Work = Callable[[], None]


class Threads:
    """Runs a limited number of pieces of work at once; a thread starts when it is first needed."""

    def __init__(self, most: int, name: str) -> None:
        self.died: Died = log_death
        """Called if work has raised, which ends its thread."""
        self._most = most
        self._name = name
        self._changed = threading.Condition()
        self._work: deque[Work] = deque()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._started = 0
        self._refused_at: float | None = None
        """Since when the system has given no thread."""
        self._stopping = False

    def submit(self, work: Work) -> None:
        """Run it as soon as a thread is free; after ``stop``, never. It must not raise.

        If the system gives no thread, it waits for ``start_missing`` or ``help``.
        """
        with self._changed:
            self._work.append(work)
            self._wake_or_start()

    def lend(self) -> None:
        """Let one more piece run at once, because a running one only waits for others."""
        with self._changed:
            self._most += 1
            self._wake_or_start()

    def take_back(self) -> None:
        """Let one fewer run at once, as soon as one has ended."""
        with self._changed:
            self._most -= 1
            self._changed.notify()

    @property
    def _too_many(self) -> bool:
        return len(self._threads) > self._most

    def _wake_or_start(self) -> None:
        """Wake a thread for queued work, or start one; the caller holds the lock."""
        if self._idle >= len(self._work):
            self._changed.notify()
        elif len(self._threads) < self._most and not self._stopping:
            self._start()

    def _start(self) -> None:
        thread = Loop(self._run, f"{self._name}-{self._started}", self.died)
        try:
            thread.start()
        except RuntimeError as error:
            if self._refused_at is None:
                self._refused_at = time.monotonic()
                LOG.warning("the system gives no thread %s, trying again: %s", thread.name, error)
        else:
            self._refused_at = None
            self._started += 1
            self._threads.append(thread)

    def start_missing(self) -> None:
        """Start threads that the system has refused; raise RuntimeError if there is none and that lasts too long."""
        with self._changed:
            if not self._work:
                self._refused_at = None
            for _ in range(len(self._work)):
                self._wake_or_start()
                if self._refused_at is not None:
                    break
            if not self._threads and self._refused_at is not None and time.monotonic() - self._refused_at > _PATIENCE:
                raise RuntimeError(f"the system has given no thread {self._name} for {_PATIENCE:g} s")

    def help(self) -> None:
        """Do in this thread what is queued, if the system has given no other."""
        while True:
            with self._changed:
                if self._threads or not self._work:
                    return
                work = self._work.popleft()
            work()

    def stop(self, seconds: float) -> list[str]:
        """Drop what is queued and wait for the rest; return the names of the threads that did not end in time."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        deadline = time.monotonic() + seconds
        threads = list(self._threads)
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0))
        return [thread.name for thread in threads if thread.is_alive()]

    def _run(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                while not self._stopping and not self._too_many and not self._work:
                    self._changed.wait()
                self._idle -= 1
                if self._stopping:
                    return
                if self._too_many:
                    self._threads.remove(threading.current_thread())
                    self._changed.notify()
                    return
                work = self._work.popleft()
            work()
