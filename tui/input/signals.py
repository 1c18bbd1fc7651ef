"""Signals that end the program: it is left as by the key, so nothing typed is lost, and the terminal is as before."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import threading
from collections.abc import Callable
from contextlib import suppress

_LONGEST = 5.0
"""The most seconds that leaving may take then: the database may be away, and nobody looks any more."""


def leave_at_signals(
    loop: asyncio.AbstractEventLoop, leave: Callable[[int], None], keep_typed: Callable[[], None]
) -> None:
    """Call ``leave`` with the exit code when the terminal closes, or when the process is asked to end.

    ``keep_typed`` is called, on another thread, if the program has not ended in time; then it ends at once.
    Not by ``loop.add_signal_handler``: the loop may wait for a terminal that takes nothing, and would hear nothing.
    """

    def end_at_once(code: int) -> None:
        try:
            keep_typed()
        finally:
            os._exit(code)

    def heed(number: int, _frame: object) -> None:
        late = threading.Timer(_LONGEST, end_at_once, (128 + number,))
        late.daemon = True
        late.start()
        if number == signal.SIGHUP:
            _let_go_of_a_lost_terminal()
        with suppress(RuntimeError):  # the loop has ended: the program ends already
            loop.call_soon_threadsafe(leave, 128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup leaves it
            signal.signal(number, heed)


def _let_go_of_a_lost_terminal() -> None:
    """Read and write nothing from now on: each try would fail, and Textual's threads with it.

    After a mere ``kill -HUP`` the terminal is still there, and is given back as it was.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        if stat.S_ISCHR(os.fstat(standard).st_mode) and not os.isatty(standard):
            os.dup2(nothing, standard)
    os.close(nothing)
