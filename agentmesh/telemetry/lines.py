"""Log records as JSON lines, and a file for them that several processes share and that has a size limit."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Any, Final

from agentmesh.domain.text import printable
from agentmesh.telemetry import record_ids

MOST_BYTES: Final = 10_000_000
"""Size limit of one file; one older file is kept beside it, ``FILE.1``."""
_LONGEST: Final = 4_000
"""Characters of a text in a record."""


class JsonLines(logging.Formatter):
    """A record as one line: time, level, event, message, process, ids, figures."""

    def __init__(self, clean: Callable[[str], str] = str) -> None:
        """``clean`` removes secrets from texts."""
        super().__init__()
        self._clean = clean

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        figures: Mapping[str, Any] = getattr(record, record_ids.FIGURES, {})
        found = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": getattr(record, record_ids.EVENT, "log"),
            "message": record.getMessage(),
            "logger": record.name,
            "pid": record.process,
            **record_ids.ids(),
            **figures,
            **_about(record),
        }
        kept = {name: self._text(value) for name, value in found.items() if value is not None}
        return json.dumps(kept, ensure_ascii=False, default=str)

    def _text(self, value: Any) -> Any:
        return printable(self._clean(value))[:_LONGEST] if isinstance(value, str) else value


class BoundedFile(WatchedFileHandler):
    """Appends lines to a file for its owner only; a full one becomes ``FILE.1``, and all processes use a new one."""

    def __init__(self, file: Path, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        super().__init__(file, encoding="utf-8")

    def _open(self) -> Any:
        return open(os.open(self.baseFilename, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a", encoding="utf-8")

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record in one piece, so that lines of several processes do not mix."""
        try:
            line = f"{self.format(record)}\n".encode()
            descriptor = self._opened()
            if os.fstat(descriptor).st_size >= self._most_bytes:
                descriptor = self._turn_over(descriptor)
            os.write(descriptor, line)
        except Exception:  # noqa: BLE001  as in the library: no record is worth an agent's turn
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  the library's name
        """Do nothing: if a record cannot be written, a complaint about it cannot either."""

    def _opened(self) -> int:
        """Return the file that has the name now."""
        self.reopenIfNeeded()
        if self.stream is None:
            raise OSError("the log file cannot be opened")
        return self.stream.fileno()

    def _turn_over(self, full: int) -> int:
        """Make the full file the older one, unless another process already has; return the new one."""
        held = os.dup(full)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)  # locks the file itself: all processes that find it full queue up here
            with suppress(FileNotFoundError):
                here, there = os.fstat(held), os.stat(self.baseFilename)
                if (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino):
                    os.replace(self.baseFilename, f"{self.baseFilename}.1")
            return self._opened()  # the new file exists before the next process in the queue looks
        finally:
            os.close(held)


def _about(record: logging.LogRecord) -> dict[str, str]:
    """Return the record's error with the file and line of its origin, but nothing that contains values."""
    if not record.exc_info or record.exc_info[1] is None:
        return {}
    error = record.exc_info[1]
    frames = traceback.extract_tb(error.__traceback__)
    return {"error": repr(error)} | ({"at": f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"} if frames else {})
