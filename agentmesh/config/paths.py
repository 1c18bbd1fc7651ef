"""The paths of configuration and data; the environment is an argument, and importing this module reads nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import platformdirs

from agentmesh.config import forms
from agentmesh.domain.errors import ConfigError

_APP = "agentmesh"
_ROOT_DATA = Path("/var/lib/agentmesh")


def user_config(environ: Mapping[str, str]) -> Path:
    """Return the user's configuration file (which need not exist); raise ConfigError for a bad variable."""
    folder = environ.get("AGENTMESH_CONFIG_DIR", "")
    if folder.strip():
        try:
            return forms.path(folder) / "config.toml"
        except forms.BadValue as error:
            raise ConfigError(f"AGENTMESH_CONFIG_DIR {error.complaint}.") from error
    xdg = environ.get("XDG_CONFIG_HOME")
    return (Path(xdg) / _APP if xdg else platformdirs.user_config_path(_APP, appauthor=False)) / "config.toml"


def project_config(workdir: Path) -> Path:
    """Return the project's configuration file (which need not exist)."""
    return workdir / ".agentmesh" / "config.toml"


def default_data(environ: Mapping[str, str]) -> Path:
    """Return the embedded server's default folder."""
    if os.geteuid() == 0:
        return _ROOT_DATA
    xdg = environ.get("XDG_DATA_HOME")
    return Path(xdg) / _APP if xdg else platformdirs.user_data_path(_APP, appauthor=False)


def user_state() -> Path:
    """Return the folder of this user's logs, locks and history on this host (which need not exist)."""
    return platformdirs.user_state_path(_APP, appauthor=False)


def make_user_state() -> Path:
    """Make the folder of ``user_state`` unless it exists, for its owner only, and return it; raise OSError."""
    folder = user_state()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
