"""The database and session that a command uses. It does not import click, because the terminal UI starts without it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agentmesh.cli.talk import complain, say
from agentmesh.domain.errors import DatabaseError, UsageError

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.app.databases import Databases
    from agentmesh.config.settings import Settings
    from agentmesh.domain.errors import AgentmeshError
    from agentmesh.domain.rows import Session


def directory() -> Path | None:
    """Return the working directory; None if it was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def here() -> Path:
    """Return the working directory; raise UsageError if it was deleted."""
    found = directory()
    if found is None:
        raise UsageError("The working directory is gone.", hint="cd to a directory that exists.")
    return found


def _where(session: str | None) -> Path:
    """Return the directory whose newest session to find; any directory will do if a session is named."""
    return here() if session is None else Path("/")


class PlaceOptions(NamedTuple):
    """The database, and the session in it, that a command uses."""

    database_url: str | None
    data_dir: str | None
    session: str | None = None
    """As the person named it; None for the newest of this directory."""
    verbose: bool = False
    """Whether to report what happens, and not only warnings."""
    log_file: str | None = None
    command: str | None = None
    """With its group: ``agentmesh db url``; None for the terminal UI."""
    database: str | None = None
    """The name of one of several databases."""

    def settings(self, *, of_project: bool = True, **flags: Any) -> Settings:
        """Read the configuration, with this directory's project file if asked; print warnings about ignored parts.

        Raise NotAPerson in a command that an agent runs.
        """
        from agentmesh.config.settings import load
        from agentmesh.tools.person_only import require_person

        place = {"database_url": self.database_url, "data_dir": self.data_dir, "log_file": self.log_file}
        settings = load({**place, **flags}, os.environ, directory() if of_project else None)
        if self.data_dir is not None and self.database_url is None and not settings.has_embedded:
            raise UsageError(
                "--data-dir is the folder of the embedded PostgreSQL, and your configuration names another database.",
                hint="Leave --data-dir out; or unset AGENTMESH_DATABASE_URL, database_url and [databases].",
            )
        if self.database is not None:
            if self.database_url is not None:
                raise UsageError("--database and --database-url each name the database to use; give one of them.")
            settings = settings.of_database(self.database)
        require_person(settings, self._what)
        for warning in settings.warnings:
            complain(warning)
        if self.verbose or settings.log.file:
            from agentmesh.cli import logs

            logs.start(settings, verbose=self.verbose)
        return settings

    def settings_without_mesh(self) -> Settings:
        """Read the configuration for a command without a mesh; if the database runs, check for a worker above."""
        from agentmesh.tools.person_only import require_person_there

        settings = self.settings()
        databases = self.databases(settings, "look", pool_size=1)
        if databases is None:
            require_person_there(settings, self._what)
            return settings
        with databases:
            running = [name for name, one in settings.databases.items() if one.url is not None]
            databases.ask(lambda _mesh: None, running)  # opening it is the check; one that is away has no worker
        for name in set(databases.names) - set(running):
            with suppress(DatabaseError):
                require_person_there(settings.of_database(name), self._what)
        return settings

    def settings_of_one(self) -> Settings:
        """Read the configuration for a command about one database, without opening it; raise UsageError for several."""
        settings = self.settings_without_mesh()
        settings.require_one_database()
        return settings

    def mesh(
        self,
        role: str,
        *,
        who: Sequence[str] = (),
        begins: bool = False,
        migrate: bool = True,
        pool_size: int = 2,
        of_project: bool = True,
        **flags: Any,
    ) -> Mesh:
        """Open the database of the session, or of the agent that the first of ``who`` names.

        With ``begins``, open the database for a new session instead. ``flags`` are settings from options,
        ``of_project`` is as in ``settings``. If there are several databases, print which ones did not answer.
        """
        settings = self.settings(of_project=of_project, **flags)
        return self.mesh_of(settings, role, who=who, begins=begins, migrate=migrate, pool_size=pool_size)

    def mesh_of(
        self,
        settings: Settings,
        role: str,
        *,
        who: Sequence[str] = (),
        begins: bool = False,
        migrate: bool = True,
        pool_size: int = 2,
    ) -> Mesh:
        """Do as ``mesh`` does, with settings that are read already."""
        databases = self.databases(settings, role, pool_size=pool_size)
        if databases is None:
            return self.open(settings, role, migrate=migrate, pool_size=pool_size)
        try:
            found = databases.for_new_session() if begins else databases.find(self.session, who, _where(self.session))
        except BaseException:
            databases.close()
            raise
        if begins or self.session is None:
            complain_without(databases.silent)
        databases.close(keep=found)
        found.tell = say
        return found

    def open(self, settings: Settings, role: str, *, migrate: bool = True, pool_size: int = 2) -> Mesh:
        """Open the one database that the settings name; raise UsageError if they name several."""
        from agentmesh.app import open_mesh

        mesh = open_mesh(settings, role=role, what=self._what, migrate=migrate, pool_size=pool_size)
        mesh.tell = say
        if len(settings.databases) > 1:
            from agentmesh.app.other_databases import workspaces_elsewhere

            mesh.workspaces.elsewhere = workspaces_elsewhere(settings, os.environ)
        return mesh

    def databases(self, settings: Settings, role: str, *, pool_size: int = 2) -> Databases | None:
        """Return the databases of the mesh, not opened; None if there is only one."""
        if not settings.has_several_databases:
            return None
        from agentmesh.app.databases import Databases

        return Databases(settings, role=role, what=self._what, pool_size=pool_size)

    @property
    def _what(self) -> str:
        """The action that only a person may do, for NotAPerson."""
        return f"use `{self.command}`" if self.command else "use the terminal UI"

    def find_session(self, mesh: Mesh) -> Session:
        """Return the session; raise UnknownSession."""
        return mesh.find_session(session=self.session, workdir=_where(self.session))


def complain_without(missing: Mapping[str, AgentmeshError]) -> None:
    """Print a warning for each database that did not answer, because the output lacks its part."""
    for name, error in missing.items():
        complain(f"Without the database {name}: {error.message}", error.hint)
