"""Opening a folder or a file without following a link, so that it is the one whose path was checked."""

from __future__ import annotations

import os

PASS = getattr(os, "O_PATH", os.O_RDONLY)
"""Flag to open a folder only to go on from it; needs no permission to list it."""
FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_ANY = getattr(os, "O_NOFOLLOW_ANY", 0)
"""Flag of macOS: no part of the path may be a link. On Linux, Python has no openat2, so folders are opened in turn."""


def open_folder(path: str) -> int:
    """Return a descriptor of a folder, to go on from; raise OSError if a part of its absolute path is a link."""
    if _ANY:
        return os.open(path or "/", PASS | os.O_DIRECTORY | os.O_CLOEXEC | _ANY)
    folder = os.open("/", PASS | FOLDER)
    try:
        for name in filter(None, path.split("/")):
            below = os.open(name, PASS | FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
    except BaseException:
        os.close(folder)
        raise
    return folder


def open_file(path: str) -> int:
    """Return a descriptor for reading a file; raise OSError if a part of its absolute path is a link.

    It opens without blocking, for a look at the type: opening a pipe must not hang.
    """
    above, _, name = path.rpartition("/")
    folder = open_folder(above)
    try:
        return os.open(name or ".", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)
