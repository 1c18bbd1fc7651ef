"""Our refs in the user's repository. They name trees, so no log and no graph shows them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import pygit2

from agentmesh.domain.errors import TreeBusy, TreeError
from agentmesh.git.rule_files import require_no_pipe

OURS: Final = "refs/agentmesh/"
_PATIENCE: Final = 2.0
_LEFT: Final = 10.0
"""Seconds after which a lock of one ref was left by a dead process: git holds it for the time of a small write."""


def write(view: pygit2.Repository, name: str, tree: str) -> None:
    """Create or move a ref."""
    _checked(view, name)
    _patiently(view, name, lambda: view.references.create(name, tree, force=True))


def remove(view: pygit2.Repository, names: Iterable[str]) -> None:
    """Remove refs, those that exist."""
    for name in names:
        _checked(view, name)
        if name in view.references:
            _patiently(view, name, lambda name=name: view.references.delete(name))  # type: ignore[misc]


def below(view: pygit2.Repository, start: str) -> dict[str, str]:
    """Return the refs below a name, with the trees that they name."""
    return {
        name: str(view.references[name].target)
        for name in view.references
        if name.startswith(OURS) and name.startswith(start)
    }


def _checked(view: pygit2.Repository, name: str) -> None:
    """Raise TreeError if a name is not one of a snapshot, or if its file is a pipe."""
    if not name.startswith(OURS) or not pygit2.reference_is_valid_name(name):
        raise TreeError(f"{name!r} is no name of a snapshot.")
    require_no_pipe(os.fspath(_common(view) / name))


def _patiently(view: pygit2.Repository, name: str, change: Callable[[], object]) -> None:
    """Change a ref; wait if git has it locked, and remove a lock that nobody holds."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            change()
        except (pygit2.GitError, OSError) as error:
            if "lock" not in str(error):
                raise
            if time.monotonic() < until:
                time.sleep(0.01)
            elif not _unlock(view, name):
                raise TreeBusy(
                    f"The ref {name} is locked by another program.", hint="Wait until `git gc` is done."
                ) from error
        else:
            return


def _unlock(view: pygit2.Repository, name: str) -> bool:
    lock = _common(view) / f"{name}.lock"
    try:
        if time.time() - lock.stat().st_mtime < _LEFT:
            return False
        lock.unlink()
    except FileNotFoundError:
        return True
    return True


def _common(view: pygit2.Repository) -> Path:
    """Return where the refs are: in the repository that a view belongs to, or in this one."""
    try:
        named = (Path(view.path) / "commondir").read_bytes()
    except FileNotFoundError:
        return Path(view.path)
    return Path(os.fsdecode(named).rstrip("\n"))
