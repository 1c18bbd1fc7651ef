"""Replace a file completely or not at all, one writer at a time."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator

from agentmesh.domain.cancel import Cancel
from agentmesh.engine.tool import ToolError
from agentmesh.tools.files import FilePlace

_BUSY = (errno.EAGAIN, errno.EACCES)
_LOCK_TRIES = 200
_LOCK_PAUSE = 0.05
"""Seconds; ten in all."""


@contextlib.contextmanager
def locked(parent: int, cancel: Cancel) -> Iterator[None]:
    """Keep other agents' tools, even in other processes, from changing files of a directory."""
    for _ in range(_LOCK_TRIES):
        try:
            fcntl.flock(parent, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError as error:
            if error.errno not in _BUSY:
                break  # a file system without locks: the rename below is still atomic
        if cancel.wait(_LOCK_PAUSE):
            raise ToolError("Interrupted before anything was changed.")
    else:
        raise ToolError("Another process keeps the file's directory locked.", "Try again later.")
    yield  # closing the descriptor releases the lock


def existing(parent: int, found: FilePlace, limit: int) -> tuple[bytes, os.stat_result] | None:
    """Return the content and facts of the file at a place, None if there is no file."""
    try:
        fd = os.open(found.parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    except FileNotFoundError:
        return None
    with open(fd, "rb") as file:
        facts = os.fstat(fd)
        if stat.S_ISDIR(facts.st_mode):
            raise ToolError(f"{found.shown} is a directory.", "Name a file.")
        if not stat.S_ISREG(facts.st_mode):
            raise ToolError(f"{found.shown} is not a regular file.", "Use `bash` for pipes, sockets and devices.")
        if facts.st_size > limit:
            raise ToolError(f"{found.shown} has {facts.st_size} bytes; at most {limit} can be changed.", "Use `bash`.")
        return file.read(), facts


@contextlib.contextmanager
def replacing(parent: int, name: str, content: bytes, old: os.stat_result | None) -> Iterator[None]:
    """Replace a file's content by renaming; keep the old file's mode and, if possible, owner.

    The block runs after the new content is on disk and before it takes the old one's place. If the block raises,
    nothing has changed.
    """
    temporary = f".agentmesh-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(temporary, flags, 0o666, dir_fd=parent)
    try:
        with open(fd, "wb") as file:
            file.write(content)
            file.flush()
            if old is not None:
                with contextlib.suppress(PermissionError):
                    os.fchown(fd, old.st_uid, old.st_gid)
                os.fchmod(fd, stat.S_IMODE(old.st_mode))
            os.fsync(fd)
        yield
        os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=parent)
        raise
