"""A workspace's place: its directory and its repository."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from pathlib import Path

from agentmesh.domain.errors import TreeError


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
