"""Where a workspace is, and in which Git repository."""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from agentmesh.domain.errors import NoRepository, TreeError

TREE: Final = "tree"
"""The folder, in a workspace's own, that holds the files of an agent's tree."""
_NO_GIT: Final = "Run `git init` there: then agents can work in trees of their own, and files can be undone."


@dataclass(frozen=True, slots=True)
class Place:
    """A workspace's directory and its repository.

    For a tree of an agent's own, ``root`` and ``top`` are in that tree, and all the rest is the user's repository.
    """

    root: Path
    """The workspace's directory, resolved."""
    top: Path
    """The directory that the repository's tree stands for."""
    git_dir: Path
    """The repository, or a linked worktree's part of it: index and HEAD."""
    common_dir: Path
    """The repository that all its worktrees share. This is its identity."""

    @property
    def objects(self) -> Path:
        """The directory of the repository's objects."""
        return self.common_dir / "objects"

    @property
    def prefix(self) -> str:
        """``root`` below ``top``, with ``/``; empty if they are one."""
        below = self.root.relative_to(self.top).as_posix()
        return "" if below == "." else below

    def inward(self, path: str) -> str:
        """Return a path relative to ``root`` as one relative to ``top``, or raise TreeError if it is outside."""
        inner = posixpath.normpath(posixpath.join(self.prefix, path))
        if inner.startswith(("/", "../")) or inner in ("..", ""):
            raise TreeError(f"The path {path!r} is outside the repository.")
        return inner

    def outward(self, path: str) -> str:
        """Return a path relative to ``top`` as one relative to ``root``; a final ``/`` stays."""
        if not self.prefix:
            return path
        return posixpath.relpath(path, self.prefix) + ("/" if path.endswith("/") else "")


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
