"""Differences between trees."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import Final

import pygit2
from pygit2.enums import DeltaStatus, DiffOption, FileMode

from agentmesh.git.facts import FileChange, FileDiff, Status
from agentmesh.git.opening import repository_of, told
from agentmesh.git.rule_files import require_files_above
from agentmesh.git.where import Place

MOST_TEXT: Final = 256 * 1024
"""Characters of one file's diff; the rest is clipped."""


def diff(
    place: Place, before: str, after: str, *, paths: Collection[str] | None = None, context: int = 3
) -> list[FileDiff]:
    """Return the files that differ, by path, with their unified diffs. ``paths`` are files or folders."""
    with told("compare two snapshots"):
        repository = repository_of(place)
        found = _between(repository, before, after, context=context)
        return [_file_diff(patch, path, status) for path, status, patch in _patches(repository, place, found, paths)]


def changes(place: Place, before: str, after: str, *, paths: Collection[str] | None = None) -> tuple[FileChange, ...]:
    """Return the files that differ, by path, with their numbers of lines."""
    with told("compare two snapshots"):
        return changes_in(repository_of(place), place, before, after, paths)


def changed_paths(place: Place, before: str, after: str) -> set[str]:
    """Return the paths of files that differ. Quicker than ``changes``: it reads no file."""
    with told("compare two snapshots"):
        found = _between(repository_of(place), before, after)
        return {place.outward(_path(delta)) for delta in found.deltas if not _is_submodule(delta)}


def changes_in(
    repository: pygit2.Repository, place: Place, before: str, after: str, paths: Collection[str] | None = None
) -> tuple[FileChange, ...]:
    """Return the same as ``changes``, of a repository that is open."""
    if before == after:
        return ()
    found = _between(repository, before, after, context=0)
    return tuple(_file_change(patch, path, status) for path, status, patch in _patches(repository, place, found, paths))


def _between(repository: pygit2.Repository, before: str, after: str, *, context: int = 3) -> pygit2.Diff:
    old = repository[before].peel(pygit2.Tree)
    return old.diff_to_tree(
        repository[after].peel(pygit2.Tree), flags=DiffOption.INCLUDE_TYPECHANGE, context_lines=context
    )


def _patches(
    repository: pygit2.Repository, place: Place, found: pygit2.Diff, paths: Collection[str] | None
) -> Iterator[tuple[str, Status, pygit2.Patch]]:
    wanted = None if paths is None else {place.inward(path) for path in paths}
    require_files_above(repository.workdir, [_path(delta) for delta in found.deltas])
    numbered = [(_path(delta), at, delta) for at, delta in enumerate(found.deltas)]
    for path, at, delta in sorted(numbered, key=lambda each: each[0]):
        if _is_submodule(delta) or not (wanted is None or is_below(path, wanted)):
            continue
        patch = found[at]
        if patch is not None:
            yield place.outward(path), _status(delta), patch


def is_below(path: str, wanted: Collection[str]) -> bool:
    """Return whether a path is one of ``wanted``, or in a folder that is."""
    return path in wanted or any(path.startswith(f"{each}/") for each in wanted) or "." in wanted


def _path(delta: pygit2.DiffDelta) -> str:
    return os.fsdecode(delta.new_file.raw_path)


def _is_submodule(delta: pygit2.DiffDelta) -> bool:
    return FileMode.COMMIT in (delta.old_file.mode, delta.new_file.mode)


def _status(delta: pygit2.DiffDelta) -> Status:
    if delta.status == DeltaStatus.ADDED:
        return "added"
    return "removed" if delta.status == DeltaStatus.DELETED else "changed"


def _file_change(patch: pygit2.Patch, path: str, status: Status) -> FileChange:
    _, added, removed = patch.line_stats
    return FileChange(path=path, status=status, added=added, removed=removed, binary=bool(patch.delta.is_binary))


def _file_diff(patch: pygit2.Patch, path: str, status: Status) -> FileDiff:
    _, added, removed = patch.line_stats
    is_binary = bool(patch.delta.is_binary)
    text = "" if is_binary else patch.data.decode(errors="surrogateescape")
    return FileDiff(
        path=path,
        status=status,
        added=added,
        removed=removed,
        text=_clipped(text),
        binary=is_binary,
        clipped=len(text) > MOST_TEXT,
    )


def _clipped(text: str) -> str:
    """Return the whole lines of a text that fit."""
    return text if len(text) <= MOST_TEXT else text[: text.rfind("\n", 0, MOST_TEXT) + 1]
