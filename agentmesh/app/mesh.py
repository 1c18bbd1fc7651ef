"""Open what settings name, and give all parts what they need."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from agentmesh.app.background import BackgroundWorker
from agentmesh.app.host_and_user import HostAndUser
from agentmesh.app.models import ConfiguredModels
from agentmesh.app.projects import Projects
from agentmesh.app.serving import Serving, ServingResult
from agentmesh.config.settings import Settings
from agentmesh.domain.errors import UnknownSession, UsageError
from agentmesh.domain.log import logger
from agentmesh.domain.rows import Session
from agentmesh.domain.states import PermissionMode
from agentmesh.domain.text import storable
from agentmesh.domain.tool_names import MCP_PREFIX
from agentmesh.store import sessions
from agentmesh.store.sizes import POOL_SIZE
from agentmesh.store.tx import Database
from agentmesh.tools.person_only import open_as_person

if TYPE_CHECKING:
    from agentmesh.config.agent_types import AgentType
    from agentmesh.config.custom_commands import CustomCommands
    from agentmesh.config.documents import Problem
    from agentmesh.config.mcp import McpServers
    from agentmesh.config.mcp_settings import McpSettings
    from agentmesh.config.skills import Skill
    from agentmesh.config.type_catalog import Catalog, LoadedTypes
    from agentmesh.engine.tool import Tool
    from agentmesh.store.embedded import EmbeddedServer
    from agentmesh.store.link import Pulse
    from agentmesh.store.listener import Listener
    from agentmesh.tools.background_runs import Processes
    from agentmesh.tools.mcp.hub import Hub
    from agentmesh.tools.typed import Delegation
    from agentmesh.tools.wall.walls import Walls
    from agentmesh.workspace.workspaces import Workspaces

LOG = logger(__name__)


def open_mesh(
    settings: Settings,
    *,
    role: str,
    what: str,
    environ: Mapping[str, str] = os.environ,
    migrate: bool = True,
    pool_size: int = POOL_SIZE,
) -> Mesh:
    """Connect to the configured database, or start the embedded one, and ensure that its schema is up to date.

    Raise NotAPerson below a worker (``what`` names the refused action), a DatabaseError, or UsageError if the settings
    name several databases. ``migrate=False`` leaves the schema unchecked.
    """
    settings.require_one_database()
    opened = open_as_person(settings, role=role, what=what, environ=environ, migrate=migrate, pool_size=pool_size)
    return Mesh(settings, *opened, environ)


def no_session_hint(ended: str | None = None) -> str:
    """Return what to do in a directory that has no open session; ``ended`` is its newest one, if there is any."""
    begin = 'Start one: agentmesh run "prompt".'
    if ended:
        return f"{begin} The last one has ended: agentmesh --resume {ended} shows it."
    return f"{begin} agentmesh sessions lists those of other directories; agentmesh --resume ID opens one."


class Mesh:
    """One process's access to everything: the database, sessions, workers."""

    def __init__(
        self, settings: Settings, database: Database, server: EmbeddedServer | None, environ: Mapping[str, str]
    ) -> None:
        self.settings = settings
        self.database = database
        self.server = server
        self.place = HostAndUser.here()
        self.models = ConfiguredModels(settings, environ)
        self.projects = Projects(settings)
        self.background = BackgroundWorker(settings, environ)
        self.serving = Serving(database, self.models, self.background)
        self.own_tools: dict[str, Tool] = {}
        """Tools of the surrounding program; register them before the first session and worker."""
        self.own_types: dict[str, AgentType] = {}
        """The same for types of sub-agents."""
        self.start_warning = ""
        """A warning for people if the model of the newest session that began here has no room for one turn."""
        self.tell: Callable[[str], None] = lambda _words: None
        """Called with a sentence about a step that takes long, on the thread that waits for it."""
        self.environ = environ
        self._closers: list[Callable[[], None]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def on_close(self, close: Callable[[], None]) -> None:
        """Have this called when the mesh closes, the latest first."""
        self._closers.append(close)

    def close(self) -> None:
        """Stop workers, close connections, and release the embedded server; idempotent."""
        while self._closers:
            self._closers.pop()()
        self.database.close()
        if self.server:
            self.server.release()

    def listener(
        self,
        on_notify: Callable[[str, str], None],
        on_reconnect: Callable[[], None],
        setup: Callable[[Any], None] | None = None,
        pulse: Pulse | None = None,
    ) -> Listener:
        """Return a listener on a connection of its own, not started."""
        from agentmesh.store.listener import Listener  # 5 ms, and the screen shows the session before

        def reconnected() -> None:
            self.database.renew()
            on_reconnect()

        return Listener(
            self.database.direct_url, on_notify=on_notify, on_reconnect=reconnected, setup=setup, pulse=pulse
        )

    def reader_url(self) -> str:
        """Return the URL for queries in a role that can only read the views."""
        from agentmesh.store import reader

        if self.settings.reader_url:
            return self.settings.reader_url
        return self.server.url(role=reader.READER) if self.server else reader.reader_url(self.database.url)

    def start_session(
        self,
        workdir: Path,
        *,
        model: str | None = None,
        title: str = "",
        mode: PermissionMode | None = None,
        external: bool = False,
    ) -> Session:
        """Begin a session in a directory, with an external root if asked; raise NoModel if no usable model is named.

        Raise UsageError if there is no such directory. The project's file of that directory applies to the session,
        whichever directory this process is in.
        """
        from agentmesh.config import rules, skills
        from agentmesh.store import agents
        from agentmesh.tools.prompt import system_prompt
        from agentmesh.tools.words import system

        if not workdir.is_dir():
            raise UsageError(f"there is no directory {workdir}", hint="Make it, or name another one.")
        place = str(workdir.resolve())
        if storable(place) != place:
            raise UsageError(
                f"the path {storable(place)} is not UTF-8: no session can be kept for it",
                hint="Rename the directory, or start in another one.",
            )
        name = self.models.name(model)
        settings = self.projects.read(workdir)
        limits = settings.limits._asdict()
        # Each worker has its own values for these.
        for own in ("tool_output_bytes", "max_task_steps", "task_silence", "answer_tokens", "answer_bytes"):
            del limits[own]
        permissions = rules.permissions(settings.rules)
        tools = self.tool_definitions(workdir.resolve(), name)
        reads_skills = any(tool["function"]["name"] == "skill" for tool in tools)
        told = skills.section(skills.offered(self.skills(workdir), permissions)) if reads_skills else ""
        new = sessions.NewSession(
            workdir=place,
            host=self.place.host,
            os_user=self.place.os_user,
            model=name,
            system_prompt=system_prompt(workdir.resolve(), system(compact=self._is_compact(name)), told),
            tools=tools,
            title=title,
            permission_mode=mode or settings.permission_mode,
            permissions=permissions.to_json(),
            limits=limits,
            needs=self.offers,
            endpoints=self.models.endpoints(),
            external=external,
            workspace=settings.workspace.default,
            leases=settings.workspace.leases,
            effort=settings.effort,
        )
        root = self.database.run(sessions.start_session, new)
        self.start_warning = self._window_warning(name, new.system_prompt, new.tools)
        if self.start_warning:
            LOG.warning("%s", self.start_warning)
        return self.database.run(sessions.get, self.database.run(agents.get, root).session_id)

    def context_window(self, model: str) -> int | None:
        """Return a model's context size in tokens as this mesh's workers know it, None if unknown."""
        from agentmesh.store import capabilities

        return self.models.context_window(model, self.database.run(capabilities.current, idempotent=True))

    def _window_warning(self, model: str, system_prompt: str, tools: Sequence[Mapping[str, Any]]) -> str:
        window = self.models.named_window(model)
        if window is None:
            return ""
        from agentmesh.app.window import warning

        most = self.settings.providers[model.partition("/")[0]].max_tokens
        return warning(model, window, system_prompt, tools, most)

    def tool_definitions(self, workdir: Path, model: str) -> list[dict[str, Any]]:
        """Return the definitions of the tools that a new session's agents are offered, sorted by name.

        It starts the MCP servers of the working directory.
        """
        from agentmesh.tools import compact, tool_schema, toolset

        tools = {name: tool for name, tool in self.tools(workdir).items() if name not in self.own_tools}
        if self._is_compact(model):
            ours = compact.definitions(tools, own_trees=self.projects.read(workdir).workspace.default == "own")
        else:
            ours = toolset.definitions(tools)
        own = [tool_schema.full(tool) for tool in self.own_tools.values()]
        foreign = self.mcp.definitions(workdir) if self.mcp_servers(workdir).servers else []
        return sorted((*ours, *own, *foreign), key=lambda tool: str(tool["function"]["name"]))

    def _is_compact(self, model: str) -> bool:
        from agentmesh.tools.compact import BELOW

        if self.settings.tools.set != "auto":
            return self.settings.tools.set == "compact"
        window = self.models.named_window(model)
        return window is not None and window < BELOW

    def mcp_servers(self, workdir: Path) -> McpServers:
        """Return the MCP servers that may start for a working directory, and why others may not.

        It reads the files each time: trust that is given or withdrawn takes effect at once, even in a running worker.
        """
        from agentmesh.config import mcp

        now = self._mcp_settings.now()
        found = mcp.read(workdir, now.servers, now.settings, self.environ)
        return found._replace(problems=(*now.problems, *found.problems))

    @cached_property
    def _mcp_settings(self) -> McpSettings:
        from agentmesh.config.mcp_settings import McpSettings

        return McpSettings(self.settings.mcp_servers, self.settings.mcp, self.environ)

    @cached_property
    def mcp(self) -> Hub:
        """The MCP servers that this process runs; each starts when it is first needed."""
        from agentmesh.tools.mcp.hub import Hub

        made = Hub(self.mcp_servers, self.settings.mcp, self.environ, self.tell)
        self.on_close(made.close)
        return made

    @cached_property
    def walls(self) -> Walls:
        """The walls around the commands of agents that this process runs."""
        from agentmesh.app.hidden import hidden_paths
        from agentmesh.tools.wall.walls import Walls

        made = Walls(self.settings.sandbox, hidden_paths(self.settings, self.environ), self.workspaces.folders.trees)
        self.on_close(made.close)
        return made

    @cached_property
    def processes(self) -> Processes:
        """The commands of agents that this process runs in the background."""
        from agentmesh.tools.background_runs import Processes
        from agentmesh.tools.guarded_run import Spawner

        made = Processes(self.database, Spawner(self.walls.home))
        self.on_close(made.close)
        return made

    @cached_property
    def workspaces(self) -> Workspaces:
        """Where agents work: own trees, snapshots, merges."""
        from agentmesh.workspace.workspaces import Workspaces

        settings, here = self.settings, self.place
        return Workspaces(self.database, settings.data_dir, settings.workspace, host=here.host, os_user=here.os_user)

    def has_walls(self) -> bool:
        """Return whether approved commands of agents run behind a wall here; the first call takes a moment."""
        return self.settings.sandbox.bash != "off" and not self.walls.problem()

    def agent_types(self, workdir: Path) -> LoadedTypes:
        """Return the types of sub-agents for a working directory, from their current files, and their problems."""
        found = self._catalog.of(workdir.resolve())
        return replace(found, types={**found.types, **self.own_types}) if self.own_types else found

    def skills(self, workdir: Path) -> Mapping[str, Skill]:
        """Return the skills for a working directory, from their current files."""
        from agentmesh.config import skills

        return skills.load(self.environ, workdir.resolve()).skills

    def custom_commands(self, workdir: Path | None) -> CustomCommands:
        """Return the custom commands for a working directory; None: its files are on another host."""
        from agentmesh.config.custom_commands import CustomCommands

        return CustomCommands(self.environ, workdir and workdir.resolve())

    @cached_property
    def _catalog(self) -> Catalog:
        from agentmesh.config.type_catalog import Catalog

        return Catalog(self.environ, self.settings.model_aliases, lambda where: self.projects.of(where).agent_types)

    def tools(self, workdir: Path | None = None) -> dict[str, Tool]:
        """Return the tools; for a new session, with descriptions that depend on its working directory."""
        from agentmesh.tools import toolset

        tools = toolset.builtin(
            self.database,
            self.settings.web,
            self.walls,
            self.delegation(workdir),
            workdir,
            self.skills,
            self.workspaces,
            self.processes,
        )
        if workdir is not None and not self.skills(workdir):
            del tools["skill"]
        return dict(sorted({**tools, **self.own_tools}.items()))

    def delegation(self, workdir: Path | None = None) -> Delegation:
        """Return the part of the configuration that tasks and forks of a type need."""
        from agentmesh.config import rules
        from agentmesh.tools.typed import Delegation

        return Delegation(
            lambda where: self.agent_types(where).types,
            self.models.name,
            lambda where: self.projects.of(where).limits.max_task_steps,
            rules.permissions((self.projects.of(workdir) if workdir else self.settings).rules),
            self.skills,
        )

    @property
    def offers(self) -> tuple[str, ...]:
        """This program's own tools and types: sessions that begin here need them, and its workers offer them."""
        return (*(f"tool {name}" for name in self.own_tools), *(f"type {name}" for name in self.own_types))

    def remarks(self, workdir: Path) -> list[Problem]:
        """Return remarks for people about the types, rules and instructions for a working directory."""
        from agentmesh.config.remarks import remarks

        found = remarks(workdir.resolve(), self._catalog, self.settings.rules, self.tool_names(workdir.resolve()))
        return [*found, *self.mcp_problems(workdir.resolve())]

    def mcp_problems(self, workdir: Path) -> list[Problem]:
        """Return the MCP servers that may not start, or failed to start in this process, and why."""
        configured = self.mcp_servers(workdir)
        return self.mcp.problems(workdir) if configured.servers else list(configured.problems)

    def tool_names(self, workdir: Path | None = None) -> list[str]:
        """Return the names of the tools that agents may have; for an MCP server a pattern, since it is not asked."""
        servers = self.mcp_servers(workdir).servers if workdir else ()
        return [*self.tools(), *(f"{MCP_PREFIX}{slug}__*" for slug in servers)]

    def find_session(self, *, session: str | None, workdir: Path) -> Session:
        """Return the named session, or for None the newest of this directory; raise UnknownSession."""
        if session is not None:
            return self.database.run(sessions.resolve, session)
        found = self.database.run(sessions.newest, str(workdir.resolve()), self.place.host, self.place.os_user)
        if found is None:
            ended = self.database.run(sessions.list_sessions, str(workdir.resolve()), 1)
            raise UnknownSession(
                f"there is no {'open ' if ended else ''}session in {workdir.resolve()}",
                hint=no_session_hint(str(ended[0].id)[:8] if ended else None),
            )
        return found

    def ensure_served(self, session: Session) -> ServingResult:
        """Start a worker in the background if none serves the session and one could; return what was done."""
        return self.serving.ensure(session)
