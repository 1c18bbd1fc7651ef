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
from agentmesh.domain.loop import Died, Loop, log_death, start_thread

LOG = logger(__name__)

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
        self._stopping = False

    def submit(self, work: Work) -> None:
        """Run it as soon as a thread is free; after ``stop``, never. It must not raise.

        Raise RuntimeError, and do not run it, if there is no thread and the system gives none.
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
            if self._threads:
                thread.start()
            else:
                start_thread(thread)
        except RuntimeError as error:
            if not self._threads:
                self._work.pop()
                raise
            LOG.warning("%d threads %s must do: %s", len(self._threads), self._name, error)
        else:
            self._started += 1
            self._threads.append(thread)

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
