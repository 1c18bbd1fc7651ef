"""Loggers for threads that must not end, even if a foreign handler fails."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any


class Log(logging.LoggerAdapter[logging.Logger]):
    """A logger that survives its handlers: a full disk or a closed pipe ends no thread."""

    def log(self, level: int, msg: object, *args: Any, **kwargs: Any) -> None:
        """Log a record; nothing is raised, whatever a handler does."""
        with suppress(Exception):  # if a record cannot be written, neither can a complaint about that
            super().log(level, msg, *args, **kwargs)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Return both unchanged: callers pass their own extras."""
        return msg, kwargs


def logger(name: str) -> Log:
    """Return the logger of a module."""
    return Log(logging.getLogger(name), None)
