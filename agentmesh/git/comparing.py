"""Differences between trees."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from agentmesh.git.facts import FileChange, FileDiff
from agentmesh.git.place import Place

MOST_TEXT: Final = 256 * 1024
"""Characters of one file's diff; the rest is clipped."""


def diff(
    place: Place, before: str, after: str, *, paths: Collection[str] | None = None, context: int = 3
) -> list[FileDiff]:
    """Return the files that differ, by path, with their unified diffs. ``paths`` are files or folders."""
    raise NotImplementedError(place, before, after, paths, context)


def changes(place: Place, before: str, after: str, *, paths: Collection[str] | None = None) -> tuple[FileChange, ...]:
    """Return the files that differ, by path, with their numbers of lines."""
    raise NotImplementedError(place, before, after, paths)


def changed_paths(place: Place, before: str, after: str) -> set[str]:
    """Return the paths of files that differ. Quicker than ``changes``: it reads no file."""
    raise NotImplementedError(place, before, after)
