"""Ctrl+C and SIGTERM as a flag that a command checks, instead of an exception anywhere."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SHOW_CURSOR = "\x1b[?25h"


class Stop:
    """Whether a person asked to stop."""

    def __init__(self, wake: Callable[[], None], farewell: str) -> None:
        self.asked = False
        self._farewell = farewell
        self._wake = wake  # called by the signal handler: must be reentrant

    def hear(self, _number: int, _frame: FrameType | None) -> None:
        """Record the first signal; leave at once at the second."""
        if self.asked:
            if sys.stderr.isatty():
                os.write(sys.stderr.fileno(), _SHOW_CURSOR.encode())
            if self._farewell:
                os.write(sys.stderr.fileno(), f"\n{self._farewell}\n".encode())
            # Not sys.exit: it would wait for threads in the middle of a call. Guards end the commands that they ran.
            os._exit(130)
        self.asked = True
        self._wake()


@contextmanager
def stoppable(wake: Callable[[], None], farewell: str = "") -> Iterator[Stop]:
    """Turn signals that ask to stop into ``Stop.asked`` and a call of ``wake``; ``farewell`` is for leaving at once."""
    stop = Stop(wake, farewell)
    before = {number: signal.signal(number, stop.hear) for number in _SIGNALS if _is_heeded(number)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_heeded(number: signal.Signals) -> bool:
    """Whether the signal was not ignored from outside (``nohup`` ignores SIGHUP)."""
    return signal.getsignal(number) is not signal.SIG_IGN
