"""Make system calls by their numbers; runs in the wall that is attacked, beside attempt.py."""

from __future__ import annotations

import ctypes
import os
import platform

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
HERE = -100
"""AT_FDCWD."""


def call(number: int, *arguments: int | bytes | ctypes.Array[ctypes.c_char] | None) -> int:
    """Make a system call by its number; OSError where the kernel refuses it."""
    if platform.machine() != "x86_64":
        raise OSError("these are numbers of another machine")
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result = int(LIBC.syscall(ctypes.c_long(number), *words))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def buffer(text: bytes = b"", size: int = 4096) -> ctypes.Array[ctypes.c_char]:
    """Return memory that the kernel may write to."""
    return ctypes.create_string_buffer(text, size)
