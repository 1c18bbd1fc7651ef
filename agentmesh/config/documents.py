"""Text files that a person or a project wrote for agents, read with care: a checkout may have been made by anybody."""

from __future__ import annotations

import codecs
import os
import stat
from pathlib import Path
from typing import Final, NamedTuple

_CONTINUATION: Final = bytes(range(0x80, 0xC0))
"""Bytes that no character of UTF-8 begins with."""


class Problem(NamedTuple):
    """What is wrong with a file, in words for people; the program goes on without what it is about."""

    file: str
    words: str
    """A sentence that can follow the name of the file."""
    line: int | None = None
    broken: bool = False
    """The file is of no use as it is; otherwise something in it was left out."""

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.words}{'' if self.words.endswith('?') else '.'}"


class Unreadable(Exception):
    """A file cannot be used; the text says why and can follow its name."""


def read(file: Path, limit: int, *, below: Path | None = None) -> tuple[str, int]:
    """Return the text of a file and how many bytes of it were left out: the middle of what exceeds ``limit`` bytes.

    Below a project's directory no link may lead out of it: what it points to would go to a model's server. Raise
    FileNotFoundError where there is none, Unreadable for one that is no text.
    """
    try:
        if below is not None and not file.resolve().is_relative_to(below.resolve()):
            raise Unreadable("leads out of the project by a symbolic link, and is not read")
        # Not to hang on a pipe: opened without blocking, then looked at.
        number = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode):
            os.close(number)
            raise Unreadable("is no file")
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
    # Cut at whole lines where there are some.
    head, tail = head[: head.rfind(b"\n") + 1] or head, tail[tail.find(b"\n") + 1 :] or tail
    left_out = found.st_size - len(head) - len(tail)
    start, end = _decoded(head, final=False), _decoded(tail.lstrip(_CONTINUATION))
    return f"{start}\n[... {left_out} bytes cut ...]\n\n{end}", left_out


def _decoded(content: bytes, *, final: bool = True) -> str:
    """Decode; without ``final`` the last character may be cut off."""
    if b"\0" in content:
        raise Unreadable("is no text: it has NUL bytes")
    try:
        return codecs.getincrementaldecoder("utf-8-sig")().decode(content, final)
    except UnicodeDecodeError as error:
        raise Unreadable("is no UTF-8 text") from error
