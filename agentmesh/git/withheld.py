"""Whether a repository has content of files that rules withhold: Git's commands show it, whatever hides the files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pygit2

from agentmesh.domain.errors import TreeError
from agentmesh.git.opening import require_files_at


def known(folder: Path, is_withheld: Callable[[str], bool], present: Iterable[str]) -> str | None:
    """Return a withheld file that the repository of a folder has, or may have by a snapshot; None if it has none.

    Git has what its index names, and snapshots have what is not ignored: ``present`` are the withheld files that are
    there, as absolute paths. What only older commits have is not looked for. If the repository cannot be read, its
    folder stands for such a file.
    """
    root = os.path.realpath(folder)
    try:
        for above in (Path(root), *Path(root).parents):
            require_files_at(above)
        found = pygit2.discover_repository(root)
        if found is None:
            return None
        repository = pygit2.Repository(found)
        top = os.path.realpath(repository.workdir or root)
        inside = _inside(root, top)
        for entry in repository.index:
            path = inside(os.fspath(entry.path))
            if is_withheld(path):
                return path
        for each in present:
            if not repository.path_is_ignored(os.path.relpath(each, top)):
                return os.path.relpath(each, root)
    except (TreeError, pygit2.GitError, KeyError, OSError, ValueError):
        return ".git"
    return None


def _inside(root: str, top: str) -> Callable[[str], str]:
    """Return a function that makes a path of the repository relative to ``root``, or absolute if it is outside."""
    if root == top:
        return lambda path: path
    prefix = f"{os.path.relpath(root, top)}/"
    return lambda path: path[len(prefix) :] if path.startswith(prefix) else f"{top}/{path}"
