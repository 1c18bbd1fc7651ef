"""Attempts by io_uring: the kernel does for a process what a filter of system calls does not see."""

from __future__ import annotations

import ctypes
import mmap
import os
import socket
import struct

from calls import HERE, buffer, call  # type: ignore[import-not-found]

OPENAT, CONNECT, SETXATTR, SOCKET = 18, 16, 42, 45


def submit(
    operation: int, *, fd: int = -1, off: int = 0, address: int = 0, length: int = 0, flags: int = 0, third: int = 0
) -> int:
    """Let the kernel do one operation and return its result; OSError where it fails."""
    parameters = buffer(size=120)
    ring = call(425, 4, parameters)
    values = struct.unpack("30I", parameters.raw)
    tail, array, completions = values[11], values[16], values[25]
    rings = mmap.mmap(ring, max(array + 4 * values[0], completions + 16 * values[1]), offset=0)
    entries = mmap.mmap(ring, 64 * values[0], offset=0x10000000)
    entry = struct.pack("BBHiQQIIQHHiQQ", operation, 0, 0, fd, off, address, length, flags, 0, 0, 0, 0, third, 0)
    entries[0:64] = entry
    rings[array : array + 4] = struct.pack("I", 0)
    rings[tail : tail + 4] = struct.pack("I", 1)
    call(426, ring, 1, 1, 1, None, 0)
    _, result = struct.unpack_from("Qi", rings, completions)
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return int(result)


def uring_setxattr(path: str) -> None:
    """Set an attribute of a file."""
    name, value, place = (ctypes.create_string_buffer(text) for text in (b"user.uring", b"y", path.encode()))
    at = ctypes.addressof
    submit(SETXATTR, fd=0, address=at(name), off=at(value), length=1, third=at(place))


def uring_open(path: str) -> None:
    """Make a file."""
    place = ctypes.create_string_buffer(path.encode())
    submit(OPENAT, fd=HERE, address=ctypes.addressof(place), length=0o600, flags=os.O_CREAT | os.O_WRONLY)


def uring_connect(port: str) -> None:
    """Make a socket and connect it."""
    made = submit(SOCKET, fd=socket.AF_INET, off=socket.SOCK_STREAM)
    whole = struct.pack("H", socket.AF_INET) + struct.pack("!H4s8x", int(port), b"\x7f\0\0\1")
    address = ctypes.create_string_buffer(whole, 16)
    submit(CONNECT, fd=made, address=ctypes.addressof(address), off=16)
