"""Ask the other databases of a mesh about things that one of them cannot decide alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from agentmesh.domain.errors import DatabaseError
from agentmesh.workspace.other_databases import OtherDatabases

if TYPE_CHECKING:
    from agentmesh.config.settings import Settings


def workspaces_elsewhere(settings: Settings, environ: Mapping[str, str]) -> Callable[[], OtherDatabases]:
    """Return a function that asks the other databases of these settings for the workspaces that they know."""
    return partial(_ask, settings, environ)


def _ask(settings: Settings, environ: Mapping[str, str]) -> OtherDatabases:
    from agentmesh.app.databases import Databases
    from agentmesh.store import workspaces

    # These settings name the URL of one database only: an entry without a URL would be taken for the same.
    everywhere = settings.elsewhere(None) if settings.elsewhere else settings
    others = [name for name in everywhere.databases if name != settings.database]
    with Databases(everywhere, role="workspaces", what="look for workspaces", environ=environ, pool_size=1) as every:
        answers = every.ask(lambda mesh: mesh.database.run(workspaces.listing, None, idempotent=True), others)
    known = {view.id: name for name, views in answers.given.items() for view in views}
    silent = tuple(name for name, error in answers.missing.items() if isinstance(error, DatabaseError))  # no twins
    return OtherDatabases(known, silent, settings.name_among_several)
