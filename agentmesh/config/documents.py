"""Text files that a person or a project wrote for agents, read with care: anybody may have written a checkout."""

from __future__ import annotations

import codecs
import errno
import os
import stat
from pathlib import Path
from typing import Final, NamedTuple

from agentmesh.config import nofollow

_CONTINUATION: Final = bytes(range(0x80, 0xC0))
"""Bytes that cannot begin a character in UTF-8."""


class Problem(NamedTuple):
    """A problem in a file, described for people; the program goes on without the part that it concerns."""

    file: str
    words: str
    """A sentence that can follow the file's name."""
    line: int | None = None
    broken: bool = False
    """The whole file is useless; otherwise only a part was left out."""

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.words}{'' if self.words.endswith('?') else '.'}"


class Unreadable(Exception):
    """A file cannot be used; the text says why and can follow its name."""


def read(file: Path, limit: int, *, below: Path | None = None, project: Path | None = None) -> tuple[str, int]:
    """Return a file's text, and how many bytes were left out: the middle of a file larger than ``limit`` bytes.

    No link may lead out of the directory ``below``, nor out of the ``project``: the text goes to a model's server.
    Raise FileNotFoundError if there is no file, Unreadable if it is not text.
    """
    try:
        real = file.resolve()
        if not all(real.is_relative_to(above.resolve()) for above in (below, project) if above is not None):
            raise Unreadable("leads out of the project by a symbolic link, and is not read")
        # Open without blocking, then check the type: opening a pipe must not hang.
        number = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC) if below is None else _opened(real)
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            os.close(number)
            raise Unreadable("is not a regular file")
        with open(number, "rb") as stream:
            head = stream.read(limit if found.st_size <= limit else limit // 2)
            if found.st_size <= limit:
                return _decoded(head), 0
            stream.seek(-(limit // 2), os.SEEK_END)
            tail = stream.read(limit // 2)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(file) from None
    except (OSError, RuntimeError) as error:
        raise Unreadable(f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    # Cut between lines, if there are several.
    head, tail = head[: head.rfind(b"\n") + 1] or head, tail[tail.find(b"\n") + 1 :] or tail
    left_out = found.st_size - len(head) - len(tail)
    start, end = _decoded(head, final=False), _decoded(tail.lstrip(_CONTINUATION))
    return f"{start}\n[... {left_out} bytes cut ...]\n\n{end}", left_out


def _opened(real: Path) -> int:
    """Open the file that was checked: none that a link has led to since."""
    try:
        return nofollow.open_file(str(real))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Unreadable("changed while it was opened, and is not read") from error
        raise


def _decoded(content: bytes, *, final: bool = True) -> str:
    """Decode the bytes; without ``final``, the last character may be cut off."""
    if b"\0" in content:
        raise Unreadable("is not text: it has NUL bytes")
    try:
        return codecs.getincrementaldecoder("utf-8-sig")().decode(content, final)
    except UnicodeDecodeError as error:
        raise Unreadable("is not UTF-8 text") from error
