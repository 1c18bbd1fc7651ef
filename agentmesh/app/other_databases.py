"""What the other databases of a mesh know, for what one of them cannot decide alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from agentmesh.domain.errors import AgentmeshError
from agentmesh.workspace.elsewhere import Elsewhere

if TYPE_CHECKING:
    from agentmesh.config.settings import Settings


def workspaces_elsewhere(settings: Settings, environ: Mapping[str, str]) -> Callable[[], Elsewhere]:
    """Return a function that asks the other databases of these settings for the workspaces that they know."""
    return partial(_ask, settings, environ)


def _ask(settings: Settings, environ: Mapping[str, str]) -> Elsewhere:
    from agentmesh.store import workspaces
    from agentmesh.tools.below import open_as_person

    known: dict[UUID, str] = {}
    silent = []
    for name in settings.databases:
        if name == settings.database:
            continue
        one = settings.of_database(name)
        try:
            database, server = open_as_person(
                one, role="workspaces", what="look for workspaces", environ=environ, migrate=False, pool_size=1
            )
            try:
                known |= {view.id: name for view in database.run(workspaces.listing, None, idempotent=True)}
            finally:
                database.close()
                if server:
                    server.release()
        except AgentmeshError:
            silent.append(name)
    return Elsewhere(known, tuple(silent), settings.name_among_several)
