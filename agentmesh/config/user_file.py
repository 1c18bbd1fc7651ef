"""Writes into the user's config.toml, and keeps its comments and order."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentmesh.config import paths, sources
from agentmesh.domain.errors import ConfigError
from agentmesh.domain.text import one_line


def set_values(environ: Mapping[str, str], values: Mapping[tuple[str, ...], Any]) -> Path:
    """Set values by their keys, as in ``("tui", "theme")``; return the file. Raise ConfigError if that fails."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    file = paths.user_config(environ)
    try:
        document = tomlkit.parse(sources.toml_text(file))
        for (*tables, name), value in values.items():
            place: Any = document
            for table in tables:
                if table not in place:
                    place.add(table, tomlkit.table(is_super_table=table == "providers"))
                place = place[table]
            place[name] = value
        _replace(file, tomlkit.dumps(document))
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}.") from error
    except (TOMLKitError, TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{file} cannot be changed: {one_line(str(error), 200)}.") from error
    return file


def _replace(file: Path, text: str) -> None:
    """Write the file in one piece; a link, as to a folder of dot files, stays one."""
    target = file.resolve()
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    fresh = target.with_name(f"{target.name}.{os.getpid()}")
    try:
        fresh.write_text(text, encoding="utf-8")
        fresh.chmod(mode)
        fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)
