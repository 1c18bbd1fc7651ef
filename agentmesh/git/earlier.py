"""Whether a file that is new to snapshots was there at the last look, which left it out: then no call has made it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from agentmesh.git.birth import born_at

_CLOCK: Final = 20_000_000
"""Nanoseconds that the times of files may be behind the clock: the kernel sets them by its tick."""
_PACKED: Final = frozenset({".7z", ".Z", ".age", ".br", ".bz2", ".gpg", ".gz", ".lz4", ".lzma", ".xz", ".zip", ".zst"})
"""What a program adds to the name of a file that it replaces by a packed one."""


def is_older(path: Path, looked_at: int | None) -> bool:
    """Return whether a file was on disk as it is now at the last look, which then left it out: it was ignored.

    The kernel sets ``ctime`` at every change, also of a file's name.
    """
    try:
        changed_at = path.lstat().st_ctime_ns
    except OSError:
        return False
    return looked_at is not None and changed_at < looked_at - _CLOCK


def was_there(path: Path, looked_at: int | None) -> bool:
    """Return whether a file was on disk at the last look, perhaps by another name or with other content.

    A hard link that was made since is no such file: what it links to has its content too.
    """
    born = born_at(path)
    if born is None or _has_other_names(path):
        return is_older(path, looked_at)
    return looked_at is not None and born < looked_at - _CLOCK


def is_packed(path: Path, looked_at: int | None) -> bool:
    """Return whether a file seems to have taken the place of one that was there: ``gzip log`` leaves ``log.gz``.

    Such programs remove the file that they read, and give its time to the one that they write.
    """
    try:
        written_at = path.lstat().st_mtime_ns
        is_alone = path.suffix in _PACKED and not path.with_suffix("").exists()
    except OSError:
        return False
    return is_alone and looked_at is not None and written_at < looked_at - _CLOCK


def _has_other_names(path: Path) -> bool:
    try:
        return path.lstat().st_nlink > 1
    except OSError:
        return False
