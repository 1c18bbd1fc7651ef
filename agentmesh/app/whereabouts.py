"""Remembers which database has a session or an agent, so that an id is asked for once.

The file has a line for each id that was found, the newest last: the id and the database's name. It is only a memory: a
database that is asked always has the last word, and a lost line costs one more question.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from agentmesh.config import paths

_MOST_BYTES: Final = 1_000_000
"""Above this, the older half of the file is dropped."""


class Whereabouts:
    """The memory of this user on this host; if its file cannot be used, only of this process."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._known: dict[str, str] | None = None

    def of(self, whole: str) -> str | None:
        """Return the name of the database that last had the id."""
        return self._read().get(whole)

    def remember(self, whole: str, name: str) -> None:
        """Remember where the id was found."""
        known = self._read()
        if known.get(whole) == name:
            return
        known[whole] = name
        try:
            file = self._path()
            descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, f"{whole} {name}\n".encode())  # one write: other processes append too
                too_long = os.fstat(descriptor).st_size > _MOST_BYTES
            finally:
                os.close(descriptor)
            if too_long:
                _halve(file)
        except OSError:
            return

    def _read(self) -> dict[str, str]:
        if self._known is None:
            try:
                lines = self._path().read_text(encoding="utf-8", errors="replace").splitlines()
            except OSError:
                lines = []
            words = (line.split() for line in lines)
            self._known = {pair[0]: pair[1] for pair in words if len(pair) == 2}
        return self._known

    def _path(self) -> Path:
        if self._file is None:
            self._file = paths.make_user_state() / "databases.ids"
        return self._file


def _halve(file: Path) -> None:
    """Keep the newer half. A line that another process appends meanwhile may be lost."""
    lines = file.read_bytes().splitlines(keepends=True)
    newer = file.with_name(f"{file.name}.{os.getpid()}")
    newer.write_bytes(b"".join(lines[len(lines) // 2 :]))
    newer.replace(file)
