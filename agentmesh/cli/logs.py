"""The destinations of log records: sentences on stderr for people, JSON lines for machines."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from agentmesh.cli.talk import Voice, write
from agentmesh.domain.errors import ConfigError
from agentmesh.export.secrets import Redactor, configured
from agentmesh.telemetry.lines import BoundedFile, JsonLines

if TYPE_CHECKING:
    from agentmesh.config.settings import Settings

STDERR = "-"
"""Name of the log file that means stderr."""


def start(settings: Settings, *, verbose: bool) -> None:
    """Send records where the settings say, and with ``verbose`` also to people; raise ConfigError for a bad file."""
    ours = logging.getLogger("agentmesh")
    handlers: list[logging.Handler] = []
    if settings.log.file != STDERR:
        handlers.append(Voice(verbose=verbose))
    if settings.log.file:
        handlers.append(_machine(settings.log.file, settings))
    for former in ours.handlers:
        former.close()
    ours.handlers = handlers
    ours.setLevel(min(handler.level for handler in handlers))


def on_stderr(settings: Settings) -> bool:
    """Whether log records go to stderr, so that nothing else may be drawn there."""
    return settings.log.file == STDERR


def _machine(file: str, settings: Settings) -> logging.Handler:
    """Return the handler that writes JSON lines."""
    try:
        handler = _Stderr() if file == STDERR else BoundedFile(Path(file))
    except OSError as error:
        raise ConfigError(f"The log file {file} cannot be written: {error.strerror or error}.") from error
    handler.setLevel(settings.log.level.upper())
    handler.setFormatter(JsonLines(Redactor(configured(settings, os.environ))))
    return handler


class _Stderr(logging.Handler):
    """Writes to the current stderr, and nothing if nobody reads it."""

    def emit(self, record: logging.LogRecord) -> None:
        write(self.format(record))
