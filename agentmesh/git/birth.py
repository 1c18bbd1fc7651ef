"""When a file was made. Its times change when it is written or renamed; this one does not.

Source: statx(2) of Linux. Python's own ``os.stat`` has it on macOS only.
"""

from __future__ import annotations

import ctypes
import os
import struct
from functools import cache
from pathlib import Path
from typing import Any, Final

_HERE: Final = -100
"""AT_FDCWD."""
_NO_LINKS: Final = 0x100
"""AT_SYMLINK_NOFOLLOW."""
_BIRTH: Final = 0x800
"""STATX_BTIME."""
_SIZE: Final = 256
"""Bytes of ``struct statx``; ``stx_mask`` is at 0, ``stx_btime`` at 80."""


def born_at(path: Path) -> int | None:
    """Return when a file was made, in nanoseconds; None if nothing is there, or the file system does not know."""
    statx = _statx()
    if statx is None:
        return _by_stat(path)
    found = ctypes.create_string_buffer(_SIZE)
    if statx(_HERE, os.fsencode(path), _NO_LINKS, _BIRTH, found) != 0:
        return None
    (known,) = struct.unpack_from("=I", found, 0)
    seconds, nanoseconds = struct.unpack_from("=qI", found, 80)
    return seconds * 1_000_000_000 + nanoseconds if known & _BIRTH else None


@cache
def _statx() -> Any:
    return getattr(ctypes.CDLL(None), "statx", None)


def _by_stat(path: Path) -> int | None:
    try:
        born = getattr(path.lstat(), "st_birthtime", None)
    except OSError:
        return None
    return None if born is None else int(born * 1_000_000_000)
