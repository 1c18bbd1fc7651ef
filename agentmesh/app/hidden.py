"""The places that no agent's command may see: the mesh's data, sockets, configuration and passwords."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agentmesh.config import paths
from agentmesh.config.settings import Settings

_PASSWORD_FILES = ("~/.pgpass", "~/.pg_service.conf", "~/.postgresql")


def hidden_paths(settings: Settings, environ: Mapping[str, str]) -> list[Path]:
    """Return the files and folders that every wall hides; they need not exist."""
    from agentmesh.store.embedded.places import Places
    from agentmesh.store.opening import local_files

    named = [environ[name] for name in ("PGPASSFILE", "PGSERVICEFILE") if environ.get(name)]
    found = [
        settings.data_dir,
        Places(settings.data_dir).socket_dir,
        paths.user_config(environ).parent,
        paths.user_state(),
        *map(Path, named),
        *(Path(path) for url in settings.database_urls for path in local_files(url)),
        *(Path(path).expanduser() for path in _PASSWORD_FILES),
    ]
    if settings.log.file and settings.log.file != "-":
        found.append(Path(settings.log.file))
    return found
