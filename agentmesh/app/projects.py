"""The settings of each working directory: a project's file holds for the sessions of its directory, and no others."""

from __future__ import annotations

import threading
from pathlib import Path

from agentmesh.config import paths
from agentmesh.config.settings import Settings
from agentmesh.domain.errors import ConfigError
from agentmesh.domain.log import logger

LOG = logger(__name__)

_Seen = tuple[int, int] | None
"""When a file was written, and its size; None for none."""


class Projects:
    """Settings by working directory, read again when the project's file has changed; any thread may ask."""

    def __init__(self, settings: Settings) -> None:
        """``settings``: of the directory that this process is in, or of none."""
        self._settings = settings
        self._lock = threading.Lock()
        self._known: dict[Path | None, tuple[_Seen, Settings]] = {}

    def read(self, workdir: Path | None) -> Settings:
        """Return the settings of a directory, with None those without a project; raise ConfigError for a wrong file."""
        return self._settings.elsewhere(workdir) if self._settings.elsewhere else self._settings

    def of(self, workdir: Path | None) -> Settings:
        """Return the same for agents that run: a file that is wrong is logged, and as if it were not there."""
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
