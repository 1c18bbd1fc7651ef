"""The settings of each working directory: a project's file applies only to the sessions of its directory."""

from __future__ import annotations

import threading
from pathlib import Path

from agentmesh.config import paths
from agentmesh.config.settings import Settings
from agentmesh.domain.errors import ConfigError
from agentmesh.domain.log import logger

LOG = logger(__name__)

_Seen = tuple[int, int] | None
"""When a file was written, and its size; None if there is no file."""


class Projects:
    """Settings by working directory, read again after the project's file has changed; for any thread."""

    def __init__(self, settings: Settings) -> None:
        """``settings`` are for this process's directory, or without a project."""
        self._settings = settings
        self._lock = threading.Lock()
        self._known: dict[Path | None, tuple[_Seen, Settings]] = {}

    def read(self, workdir: Path | None) -> Settings:
        """Return the settings of a directory, or without a project for None; raise ConfigError for a wrong file."""
        return self._settings.elsewhere(workdir) if self._settings.elsewhere else self._settings

    def of(self, workdir: Path | None) -> Settings:
        """Return the same for running agents: a wrong file is logged and ignored."""
        seen = _seen(paths.project_config(workdir)) if workdir else None
        with self._lock:
            known = self._known.get(workdir)
        if known is not None and known[0] == seen:
            return known[1]
        try:
            settings = self.read(workdir)
        except ConfigError as error:
            LOG.warning("the project's file is not used: %s", error)
            settings = self.read(None)
        with self._lock:
            self._known[workdir] = seen, settings
        return settings


def _seen(file: Path) -> _Seen:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
