"""Where log records go: sentences on stderr for people, JSON lines for machines."""

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
"""As the name of the log file."""


def start(settings: Settings, *, verbose: bool) -> None:
    """Send records where the settings say, and with ``verbose`` to people too; raise ConfigError for a bad file."""
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
    """Whether stderr is for records, so that nothing is to be drawn there."""
    return settings.log.file == STDERR


def _machine(file: str, settings: Settings) -> logging.Handler:
    """Return what writes JSON lines."""
    try:
        handler = _Stderr() if file == STDERR else BoundedFile(Path(file))
    except OSError as error:
        raise ConfigError(f"The log file {file} cannot be written: {error.strerror or error}.") from error
    handler.setLevel(settings.log.level.upper())
    handler.setFormatter(JsonLines(Redactor(configured(settings, os.environ))))
    return handler


class _Stderr(logging.Handler):
    """Writes where stderr is at that moment; where nobody reads, nothing."""

    def emit(self, record: logging.LogRecord) -> None:
        write(self.format(record))
