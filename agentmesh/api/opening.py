"""``agentmesh.open``: from a program's arguments to a mesh."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmesh.api.arguments import list_of, of_kind, path_of, text_of
from agentmesh.api.mesh import Mesh
from agentmesh.api.runtimes import Runtimes
from agentmesh.config import sources
from agentmesh.config.settings import load
from agentmesh.domain.errors import ConfigError
from agentmesh.domain.log import logger

if TYPE_CHECKING:
    from agentmesh.config.agent_types import AgentType

LOG = logger(__name__)


def open(  # noqa: A001  agentmesh.open, as in webbrowser.open
    database_url: str | None = None,
    *,
    data_dir: str | os.PathLike[str] | None = None,
    database: str | None = None,
    tools: Iterable[Callable[..., Any]] = (),
    agent_types: Iterable[AgentType] = (),
    settings: Mapping[str, Any] | None = None,
    background_workers: bool = True,
) -> Mesh:
    """Open a mesh on the database at a URL, or the configured one, or the embedded PostgreSQL of this user.

    ``settings`` override the configuration; their names are those of the variables in lower case (``{"model":
    "gpt-5-mini", "max_agents": 8}``). ``tools`` are plain functions and ``agent_types`` are types of sub-agents; only
    the workers of this process have them. ``background_workers=False``: never start a worker process for a session
    without one. If the configuration has several databases, the mesh is on all of them, or on the one that ``database``
    names; one that does not answer is left out, and the log says so.
    """
    settings = of_kind({} if settings is None else settings, Mapping, "settings", 'Give {"model": "gpt-5-mini"}.')
    tools = list_of(tools, "tools", "Give [function].")
    agent_types = list_of(agent_types, "agent_types", "Give [agentmesh.AgentType(...)].")
    # An empty text stays one, to be refused: as a Path it would be the working directory.
    place = data_dir if data_dir is None or isinstance(data_dir, str) else path_of(data_dir, "data_dir")
    given = {"database_url": database_url, "data_dir": place, **settings}
    if unknown := [name for name in given if name not in sources.settable()]:
        raise ConfigError(
            f"there is no setting {', '.join(map(repr, unknown))}",
            hint=f"Settings are: {', '.join(sorted(sources.settable()))}.",
        )
    loaded = load(given, os.environ, Path.cwd(), lambda name: f"settings[{name!r}]" if name in settings else name)
    if (database := text_of(database, "database")) is not None:
        loaded = loaded.of_database(database)
    for warning in loaded.warnings:
        LOG.warning("%s", warning)
    what = "use `agentmesh.open()`"
    mesh = Mesh(Runtimes(loaded, role="python", what=what, background_workers=background_workers))
    try:
        for function in tools:
            mesh.tool(function)
        for kind in agent_types:
            mesh.add_agent_type(kind)
    except BaseException:
        mesh.close()
        raise
    return mesh
