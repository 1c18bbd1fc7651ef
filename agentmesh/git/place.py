"""Where a workspace is, and in which Git repository."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from agentmesh.domain.errors import NoRepository
from agentmesh.git.where import Place

__all__ = ["TREE", "Place", "find", "own_place"]

TREE: Final = "tree"
"""The folder, in a workspace's own, that holds the files of an agent's tree."""
_NO_GIT: Final = "Run `git init` there: then agents can work in trees of their own, and files can be undone."


def find(root: Path) -> Place:
    """Return the place of a directory, or raise NoRepository with the reason. Costs one open; keep the answer.

    Imports pygit2 only if there is a ``.git`` above the directory.
    """
    root = root.resolve()
    top = next((folder for folder in (root, *root.parents) if os.path.lexists(folder / ".git")), None)
    if top is None or ".git" in root.parts:
        raise NoRepository(_why_none(root), hint=_NO_GIT)
    from agentmesh.git import opening

    return opening.examined(root, top)


def own_place(place: Place, folder: Path) -> Place:
    """Return the place of the tree that ``make_tree`` made, or will make, in ``folder`` from ``place``."""
    top = folder.resolve() / TREE
    return replace(place, root=top / place.prefix, top=top)


def _why_none(root: Path) -> str:
    inside = ".git" in root.parts or all((root / name).exists() for name in ("HEAD", "objects", "refs"))
    if inside:
        return f"{root} is a bare Git repository, or a part of one, and has no files to work on."
    return f"{root} is in no Git repository."
