"""What is said to the person on stderr: remarks, complaints, log records. Never data."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import sys
import time

from agentmesh.domain.text import printable

_ECHO = 5.0
"""Seconds within which the same log record again is an echo."""


def say(text: str) -> None:
    """Say something; where nobody listens any more, that is no reason to fail."""
    with contextlib.suppress(BrokenPipeError):
        print(printable(text), file=sys.stderr, flush=True)


def complain(sentence: str, hint: str = "") -> None:
    """Say what went wrong and, below, what to do about it."""
    say("\n".join([f"agentmesh: {sentence}", *(f"  {line}" for line in hint.splitlines())]))


def debugging() -> bool:
    """Whether tracebacks are wanted."""
    return os.environ.get("AGENTMESH_DEBUG", "") not in ("", "0")


def start_logging() -> None:
    """Say the program's own warnings; those of libraries only while debugging."""
    handler = Voice()
    ours = logging.getLogger("agentmesh")
    ours.handlers = [handler]
    ours.setLevel(handler.level)
    ours.propagate = False
    logging.getLogger().handlers = [handler if debugging() else logging.NullHandler()]


class Voice(logging.Handler):
    """Says records, so that a tree drawn on stderr stays whole; what two threads say at once is said once."""

    def __init__(self, *, verbose: bool = False) -> None:
        """``verbose``: not only warnings, but what goes on."""
        super().__init__(logging.INFO if verbose else logging.WARNING)
        self.setFormatter(_Sentence())
        self._last: tuple[str, float] = ("", -math.inf)

    def emit(self, record: logging.LogRecord) -> None:
        """Say the record."""
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
