"""A fixed number of threads that take work from a queue.

Not ``ThreadPoolExecutor``: its threads keep the process from ending, and its shutdown waits without a limit. A tool
that hangs in the kernel must not keep a worker from handing over its agents and leaving.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

Work = Callable[[], None]


class Threads:
    """Runs work, at most so many pieces at once; a thread starts when it is first needed."""

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._changed = threading.Condition()
        self._work: deque[Work] = deque()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._stopping = False

    def submit(self, work: Work) -> None:
        """Run it as soon as a thread is free; after stop, never. It must not raise."""
        with self._changed:
            self._work.append(work)
            if self._idle >= len(self._work):
                self._changed.notify()
            elif len(self._threads) < self._most and not self._stopping:
                name = f"{self._name}-{len(self._threads)}"
                self._threads.append(threading.Thread(target=self._run, name=name, daemon=True))
                self._threads[-1].start()

    def stop(self, seconds: float) -> list[str]:
        """Forget what is queued and wait for the rest; return the names of the threads that did not end in time."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0))
        return [thread.name for thread in self._threads if thread.is_alive()]

    def _run(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                while not self._work and not self._stopping:
                    self._changed.wait()
                self._idle -= 1
                if self._stopping:
                    return
                work = self._work.popleft()
            work()
