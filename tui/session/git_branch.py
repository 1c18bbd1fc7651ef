"""Which branch of git a directory is on, read from git's own files: no program is started."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from agentmesh.domain.text import one_line

_MOST = 4096
"""Bytes of a file that are read."""
_SHOWN = 40
_BRANCHES = "ref: refs/heads/"


def git_branch(folder: Path) -> str:
    """Return the branch, of a detached head the first digits of its commit; empty outside a repository."""
    for above in (folder, *folder.parents):
        entry = above / ".git"
        head = _read(entry / "HEAD") or _head_of_worktree(entry)
        if head:
            return one_line(_name(head), _SHOWN)
    return ""


def _head_of_worktree(entry: Path) -> str:
    """Return the head that the file ``.git`` of a worktree or a submodule leads to."""
    kind, _, target = _read(entry).partition("gitdir:")
    return _read(entry.parent / target.strip() / "HEAD") if target and not kind else ""


def _name(head: str) -> str:
    if head.startswith(_BRANCHES):
        return head.removeprefix(_BRANCHES)
    return head.removeprefix("ref: ") if head.startswith("ref: ") else head[:7]


def _read(file: Path) -> str:
    """Return the first line of a regular file; empty if there is none. A pipe would never end."""
    try:
        opened = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return ""
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            return ""
        return next(iter(os.read(opened, _MOST).decode("utf-8", "replace").splitlines()), "").strip()
    except OSError:
        return ""
    finally:
        os.close(opened)
