"""The files outside a working tree that libgit2 opens by itself: the repository's own, and the user's settings.

An approved command can write most of them. If one is a pipe, and nobody writes to it, libgit2 never returns.
"""

from __future__ import annotations

import os
from typing import Final

import pygit2
from pygit2.enums import ConfigLevel

from agentmesh.git.rule_files import require_no_pipe
from agentmesh.git.where import Place

_OWN: Final = ("HEAD", "commondir", "gitdir", "index", "config.worktree")
_SHARED: Final = (
    "HEAD",
    "config",
    "packed-refs",
    "shallow",
    "info/exclude",
    "info/attributes",
    "objects/info/alternates",
    "objects/info/commit-graph",
    "objects/pack/multi-pack-index",
)
_USERS: Final[dict[ConfigLevel, tuple[str, ...]]] = {
    ConfigLevel.GLOBAL: (".gitconfig",),
    ConfigLevel.XDG: ("config", "ignore", "attributes"),
    ConfigLevel.SYSTEM: ("gitconfig", "gitattributes"),
}
_NAMED: Final = ("core.excludesfile", "core.attributesfile")
"""Settings that name a further file with rules."""


def require_files(place: Place) -> None:
    """Raise TreeError if a file that libgit2 may open in every repository is a pipe."""
    top = os.fspath(place.top)
    for name in _OWN:
        require_no_pipe(os.path.join(place.git_dir, name), top)
    for name in _SHARED:
        require_no_pipe(os.path.join(place.common_dir, name), top)
    for level, names in _USERS.items():
        for folder in (pygit2.settings.search_path[level] or "").split(os.pathsep):
            for name in names:
                require_no_pipe(os.path.join(folder, name))


def require_named_files(repository: pygit2.Repository) -> None:
    """Raise TreeError if a file that the settings name is a pipe. Call :func:`require_files` before."""
    settings = repository.config
    for key in _NAMED:
        if key in settings:
            require_no_pipe(os.path.expanduser(settings[key] or ""))
