"""Where a workspace is, and in which Git repository."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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


def find(root: Path) -> Place:
    """Return the place of a directory, or raise NoRepository with the reason. Costs one open; keep the answer.

    Imports pygit2 only if there is a ``.git`` above the directory.
    """
    raise NotImplementedError(root)


def own_place(place: Place, folder: Path) -> Place:
    """Return the place of the tree that ``make_tree`` made, or will make, in ``folder`` from ``place``."""
    raise NotImplementedError(place, folder)
