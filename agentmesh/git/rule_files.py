"""Files that Git reads by itself while it looks at others, and what must not stand in their place: a pipe.

libgit2 opens each ``.gitignore`` and ``.gitattributes`` on its way. If one is a pipe, and nobody writes to it, libgit2
never returns, and the thread with it.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from agentmesh.domain.errors import TreeError

_RULES: Final = (".gitignore", ".gitattributes")
_SETTLED: Final = 1_000_000_000
"""Nanoseconds after which a folder has another time of change if it changes again."""


def read_regular(path: Path) -> bytes:
    """Return the content of a file; raise OSError at once if it is no regular one."""
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError(errno.EINVAL, "no regular file", os.fspath(path))
    with os.fdopen(opened, "rb") as file:
        return file.read()


class _Known(NamedTuple):
    """A folder as it was when it was read."""

    changed: int
    folders: tuple[str, ...]
    links: tuple[str, ...]
    """Rules by way of a link: what it leads to can change, and the folder does not."""


class RuleFiles:
    """The files with rules below a directory.

    A folder is read again only if it has changed. For others it takes a stat: in all 7 ms of a look that takes 110 ms,
    at 2,000 folders with 20,000 files.
    """

    def __init__(self, top: Path) -> None:
        self._top = os.fspath(top)
        self._known: dict[str, _Known] = {}

    def require_files(self) -> None:
        """Raise TreeError if one of them is a pipe."""
        left = [self._top]
        known: dict[str, _Known] = {}
        while left:
            folder = left.pop()
            found = self._read(folder)
            if found is not None:
                known[folder] = found
                left += found.folders
        self._known = known

    def require_files_above(self, paths: Collection[str]) -> None:
        """Raise TreeError if one of those that Git reads for these paths is a pipe."""
        for folder in {folder for path in paths for folder in _above(path)}:
            for name in _RULES:
                self._require_no_pipe(os.path.join(self._top, folder, name))

    def _read(self, folder: str) -> _Known | None:
        """Return a folder; None if it is gone, or may still change unseen."""
        try:
            changed = os.stat(folder, follow_symlinks=False).st_mtime_ns
            known = self._known.get(folder)
            if known is None or known.changed != changed:
                known = self._listed(folder, changed)
        except OSError:
            return None
        for link in known.links:
            self._require_no_pipe(link)
        return known

    def _listed(self, folder: str, changed: int) -> _Known:
        folders, links = [], []
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != ".git":
                        folders.append(entry.path)
                elif entry.name in _RULES:
                    self._require_no_pipe(entry.path)
                    if entry.is_symlink():
                        links.append(entry.path)
        is_settled = time.time_ns() - changed > _SETTLED
        return _Known(changed if is_settled else -1, tuple(folders), tuple(links))

    def _require_no_pipe(self, path: str) -> None:
        try:
            is_pipe = stat.S_ISFIFO(os.stat(path).st_mode)
        except OSError:
            return
        if is_pipe:
            shown = os.path.relpath(path, self._top)
            raise TreeError(f"{shown} is a pipe, and Git would wait for ever for its rules.", hint="Remove it.")


def _above(path: str) -> Iterator[str]:
    """Yield the folders above a path, the top as an empty text."""
    while path:
        path = path.rpartition("/")[0]
        yield path
