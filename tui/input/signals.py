"""Signals that end the program: it is left as by the key, so nothing typed is lost, and the terminal is as before."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import threading
from collections.abc import Callable

_LONGEST = 5.0
"""The most seconds that leaving may take then: the database may be away, and nobody looks any more."""


def leave_at_signals(loop: asyncio.AbstractEventLoop, leave: Callable[[int], None]) -> None:
    """Call ``leave`` with the exit code when the terminal closes, or when the process is asked to end."""

    def heed(number: int) -> None:
        late = threading.Timer(_LONGEST, os._exit, (128 + number,))
        late.daemon = True
        late.start()
        if number == signal.SIGHUP:
            _let_go_of_the_terminal()
        leave(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup leaves it
            loop.add_signal_handler(number, heed, number)


def _let_go_of_the_terminal() -> None:
    """Read and write nothing from now on: each try would fail, and Textual's threads with it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        if stat.S_ISCHR(os.fstat(standard).st_mode):
            os.dup2(nothing, standard)
    os.close(nothing)
