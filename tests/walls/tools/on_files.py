"""Attempts on files, by roads that look at no path or pass a filter; runs beside attempt.py."""

from __future__ import annotations

import array
import ctypes
import fcntl
import mmap
import os
import struct
from pathlib import Path

from calls import HERE, LIBC, buffer, call  # type: ignore[import-not-found]


def chattr(path: str) -> None:
    """Set an attribute of a file: no access times."""
    flags = array.array("l", [0])
    file = os.open(path, os.O_RDONLY)
    fcntl.ioctl(file, 0x80086601, flags, True)
    flags[0] |= 0x80
    fcntl.ioctl(file, 0x40086602, flags)


def reopen(path: str) -> None:
    """Open for writing what is open for reading."""
    file = os.open(path, os.O_RDONLY)
    os.write(os.open(f"/proc/self/fd/{file}", os.O_WRONLY), b"y")


def mapped(path: str) -> None:
    """Write to a file through memory."""
    file = os.open(path, os.O_RDWR)
    with mmap.mmap(file, 1) as memory_of_it:
        memory_of_it[0] = ord("y")


def by_handle(path: str) -> None:
    """Open a file by its number on the disk, which looks at no path."""
    handle, mount = buffer(struct.pack("Ii", 128, 0), 136), buffer(size=4)
    call(303, HERE, path.encode(), handle, mount, 0)
    file = call(304, os.open(".", os.O_RDONLY), handle, os.O_RDWR)
    os.write(file, b"y")


def watch(path: str) -> None:
    """Hear what others do with a file outside."""
    call(254, call(253), path.encode(), 0x2)


def memfd(path: str) -> None:
    """Run a program that is in no file, and let it write."""
    file = os.memfd_create("x")
    os.write(file, Path("/usr/bin/touch").read_bytes())
    os.execv(f"/proc/self/fd/{file}", ["touch", path])


def i386(path: str) -> None:
    """Change a file by the calls of 32-bit programs, which a filter may not know."""
    LIBC.mmap.restype = ctypes.c_void_p
    at = LIBC.mmap(None, ctypes.c_size_t(4096), 7, 0x62, -1, ctypes.c_long(0))  # MAP_32BIT: the call takes 32 bits
    name = path.encode() + b"\0"
    code = b"\x53\xb8\x0f\0\0\0\xbb" + struct.pack("I", at + 256) + b"\xb9\xff\x01\0\0\xcd\x80\x5b\xc3"
    ctypes.memmove(at + 256, name, len(name))
    ctypes.memmove(at, code, len(code))
    if ctypes.CFUNCTYPE(ctypes.c_int)(at)() != 0:
        raise OSError("refused")
