"""Messages for people on stderr: remarks, complaints, log records. Never data."""

from __future__ import annotations

import atexit
import contextlib
import logging
import math
import os
import sys
import threading
import time
from queue import Full, Queue

from agentmesh.domain.text import printable

_ECHO = 5.0
"""Seconds within which the same log record counts as an echo."""


_MOST_LINES = 1000
"""Lines that wait while stderr accepts none; further ones are dropped."""
_FAREWELL = 1.0
"""Seconds for writing the waiting lines when the program ends."""


def say(text: str) -> None:
    """Print a message; it does not fail if nobody reads it any more."""
    write(printable(text))


def write(line: str) -> None:
    """Write a line to stderr, or drop it if that fails: a full disk or a closed pipe stops no work."""
    if waiting := _Aside.lines:
        with contextlib.suppress(Full):
            waiting.put_nowait(line)
    elif sys.stderr is not None:  # None: it was closed before the program began
        with contextlib.suppress(OSError, ValueError):
            print(line, file=sys.stderr, flush=True)


class _Aside:
    """Lines that wait for the thread that writes them; None while every thread writes its own."""

    lines: Queue[str | None] | None = None


def write_aside() -> None:
    """Start a thread that writes to stderr from now on: a stopped terminal or a pager must not stop agents."""
    if sys.stderr is None:
        return
    lines = _Aside.lines = Queue[str | None](_MOST_LINES)
    writer = threading.Thread(target=_write_lines, args=(lines, sys.stderr.fileno()), name="stderr", daemon=True)
    writer.start()
    atexit.register(_finish, lines, writer)


def _finish(lines: Queue[str | None], writer: threading.Thread) -> None:
    with contextlib.suppress(Full):
        lines.put_nowait(None)
        writer.join(_FAREWELL)


def _write_lines(lines: Queue[str | None], descriptor: int) -> None:
    while (line := lines.get()) is not None:
        left = f"{line}\n".encode(errors="backslashreplace")
        with contextlib.suppress(OSError):  # the next line may find space again
            while left:  # not by sys.stderr: it keeps what it could not write, and fails with it at the end
                left = left[os.write(descriptor, left) :]


def complain(sentence: str, hint: str = "") -> None:
    """Print what went wrong and, below, what to do about it."""
    say("\n".join([f"agentmesh: {sentence}", *(f"  {line}" for line in hint.splitlines())]))


def debugging() -> bool:
    """Whether tracebacks are wanted."""
    return os.environ.get("AGENTMESH_DEBUG", "") not in ("", "0")


def start_logging() -> None:
    """Print the program's own warnings, and only while debugging the warnings of libraries."""
    handler = Voice()
    ours = logging.getLogger("agentmesh")
    ours.handlers = [handler]
    ours.setLevel(handler.level)
    ours.propagate = False
    logging.getLogger().handlers = [handler if debugging() else logging.NullHandler()]


class Voice(logging.Handler):
    """Prints log records so that a tree drawn on stderr stays intact; the same record from two threads appears once."""

    def __init__(self, *, verbose: bool = False) -> None:
        """``verbose``: print what happens too, not only warnings."""
        super().__init__(logging.INFO if verbose else logging.WARNING)
        self.setFormatter(_Sentence())
        self._last: tuple[str, float] = ("", -math.inf)

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record."""
        words = self.format(record)
        if words != self._last[0] or record.created - self._last[1] > _ECHO:
            say(words)
        self._last = (words, record.created)


class _Sentence(logging.Formatter):
    """A record as one printable line; tracebacks only while debugging."""

    def format(self, record: logging.LogRecord) -> str:
        sentence = printable(record.getMessage())
        if record.levelno < logging.WARNING:
            return f"{time.strftime('%H:%M:%S', time.localtime(record.created))} {sentence}"
        sentence = f"agentmesh: {sentence}"
        if record.exc_info and debugging():
            return f"{sentence}\n{self.formatException(record.exc_info)}"
        if record.exc_info and record.exc_info[1]:
            return f"{sentence}: {printable(repr(record.exc_info[1]))}"
        return sentence
