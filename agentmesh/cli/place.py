"""Which database and session a command is about. Without click, for the start of the terminal UI does without it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agentmesh.cli.talk import complain

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.config.settings import Settings
    from agentmesh.domain.rows import Session


class Place(NamedTuple):
    """Which database, and which of its sessions, a command is about."""

    database_url: str | None
    data_dir: str | None
    session: str | None = None
    """As the person named it; None for the newest of this directory."""
    verbose: bool = False
    """Whether people are told what goes on, not only what is wrong."""
    log_file: str | None = None

    def settings(self, **flags: Any) -> Settings:
        """Read the configuration; say what in it was ignored."""
        from agentmesh.config.settings import load

        place = {"database_url": self.database_url, "data_dir": self.data_dir, "log_file": self.log_file}
        settings = load({**place, **flags}, os.environ, Path.cwd())
        for warning in settings.warnings:
            complain(warning)
        if self.verbose or settings.log.file:
            from agentmesh.cli import logs

            logs.start(settings, verbose=self.verbose)
        return settings

    def mesh(self, role: str, *, migrate: bool = True, pool_size: int = 2, **flags: Any) -> Mesh:
        """Open the database; ``flags`` are settings that come from options."""
        from agentmesh.app import open_mesh

        return open_mesh(self.settings(**flags), role=role, migrate=migrate, pool_size=pool_size)

    def find_session(self, mesh: Mesh) -> Session:
        """Return the session; raise UnknownSession."""
        return mesh.find_session(session=self.session, workdir=Path.cwd())
