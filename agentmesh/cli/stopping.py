"""Ctrl+C and SIGTERM as something that a command sees when it looks, instead of an exception anywhere."""

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

    def __init__(self, wake: Callable[[], None], farewell: str = "") -> None:
        self.asked = False
        self._farewell = farewell
        self._wake = wake  # called by the signal handler: must be reentrant

    def hear(self, _number: int, _frame: FrameType | None) -> None:
        """Note the first signal; the second leaves at once."""
        if self.asked:
            if sys.stderr.isatty():
                os.write(sys.stderr.fileno(), _SHOW_CURSOR.encode())
            if self._farewell:
                os.write(sys.stderr.fileno(), f"\n{self._farewell}\n".encode())
            # Not sys.exit: threads in the midst of a call would be waited for. What they ran is ended by its guards.
            os._exit(130)
        self.asked = True
        self._wake()


@contextmanager
def stoppable(wake: Callable[[], None], farewell: str = "") -> Iterator[Stop]:
    """Turn the signals that ask to stop into ``Stop.asked`` and a call of ``wake``; who leaves at once is told."""
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
