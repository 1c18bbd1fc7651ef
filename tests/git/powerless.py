"""Code that runs with the rights of a file's owner only, also if root runs the tests."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_VERSION: Final = 0x20080522
READS_ALL: Final = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""
GIVES_AWAY: Final = 1 << 0
"""CAP_CHOWN."""


@contextmanager
def powerless(rights: int = READS_ALL) -> Iterator[None]:
    """Let this thread do without some rights of root: let permissions of files count for it, as for anybody."""
    if sys.platform != "linux":
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_VERSION, 0)
    before = (ctypes.c_uint32 * 6)()
    assert libc.capget(header, before) == 0
    less = (ctypes.c_uint32 * 6)(*before)
    less[0] &= ~rights
    assert libc.capset(header, less) == 0
    try:
        yield
    finally:
        assert libc.capset(header, before) == 0


@contextmanager
def member_of(groups: list[int]) -> Iterator[None]:
    """Let this process be in these groups, beside its own one; only root's may choose."""
    before = os.getgroups()
    os.setgroups(groups)
    try:
        yield
    finally:
        os.setgroups(before)
