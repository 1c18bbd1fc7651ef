"""The folders that may hold skills and custom commands: the user's first, then those of the project."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentmesh.config import paths
from agentmesh.config.documents import Problem

MAX_FILES: Final = 200
"""Entries of one folder that are looked at."""


@dataclass(frozen=True, slots=True)
class Folder:
    """One such folder. The user's are trusted like the configuration; anybody may have written a project's."""

    path: Path
    project: Path | None = None
    """The project that has the folder; None for the user's own."""
    home: Path | None = None

    def shown(self, file: Path) -> str:
        """Return a file's path for people: relative to the project or home directory, if it is in one of them."""
        for base, prefix in ((self.project, ""), (self.home, "~/")):
            if base is not None and file.is_relative_to(base):
                return f"{prefix}{file.relative_to(base)}"
        return str(file)


def folders(
    environ: Mapping[str, str], workdir: Path | None, kind: str, shared: tuple[str, ...] = (".claude",)
) -> Iterator[Folder]:
    """Yield the folders of a kind (``skills``, ``commands``), in order of precedence.

    ``shared`` are the folders of other programs that use the same form. ``workdir`` is None if its files are on another
    host. If the home directory is the working directory, the user's folders are also the project's: each comes once.
    """
    home = Path(environ["HOME"]) if environ.get("HOME") else None
    found = [Folder(paths.user_config(environ).parent / kind, home=home)]
    found += [Folder(home / name / kind, home=home) for name in shared if home]
    if workdir is not None:
        found += [Folder(workdir / name / kind, workdir, home) for name in (".agentmesh", *shared)]
    been: set[str] = set()
    for folder in found:
        real = os.path.realpath(folder.path)
        if real not in been:
            been.add(real)
            yield folder


def entries(folder: Folder, problems: list[Problem]) -> list[Path]:
    """Return the entries of a folder, sorted by name, without hidden ones."""
    try:
        found = sorted(entry for entry in folder.path.iterdir() if not entry.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        problems.append(Problem(str(folder.path), f"cannot be read: {error.strerror}"))
        return []
    if len(found) > MAX_FILES:
        problems.append(Problem(str(folder.path), f"only the first {MAX_FILES} entries are read"))
    return found[:MAX_FILES]
