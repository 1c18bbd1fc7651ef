"""The folders that may hold types of sub-agents, skills and custom commands: the user's first, then the project's."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentmesh.config import paths
from agentmesh.config.documents import Problem

MAX_FILES: Final = 200
"""Entries of one folder that are looked at."""
_CLAUDE: Final = ".claude"

Stamp = tuple[str, int, int]
"""The name of a file, the time of its last change and its size; the size is -1 if there is no such file."""


@dataclass(frozen=True, slots=True)
class Folder:
    """One such folder. The user's are trusted like the configuration; anybody may have written a project's."""

    path: Path
    project: Path | None = None
    """The project that has the folder; None for the user's own."""
    home: Path | None = None
    claude: bool = False
    """Whether its files are Claude Code's."""

    def shown(self, file: Path) -> str:
        """Return a file's path for people: relative to the project or home directory, if it is in one of them."""
        for base, prefix in ((self.project, ""), (self.home, "~/")):
            if base is not None and file.is_relative_to(base):
                return f"{prefix}{file.relative_to(base)}"
        return str(file)


def folders(
    environ: Mapping[str, str], workdir: Path | None, kind: str, shared: tuple[str, ...] = (_CLAUDE,)
) -> list[Folder]:
    """Return the folders of a kind (``agents``, ``skills``, ``commands``), in order of precedence.

    ``shared`` are the folders of other programs that use the same form. ``workdir`` is None if its files are on another
    host. If the home directory is the working directory, the user's folders are also the project's: each comes once.
    """
    home = Path(environ["HOME"]) if environ.get("HOME") else None
    found = [Folder(paths.user_config(environ).parent / kind, home=home)]
    found += [Folder(home / name / kind, None, home, name == _CLAUDE) for name in shared if home]
    if workdir is not None:
        found += [Folder(workdir / name / kind, workdir, home, name == _CLAUDE) for name in (".agentmesh", *shared)]
    by_path: dict[str, Folder] = {}
    for folder in found:
        by_path.setdefault(os.path.realpath(folder.path), folder)
    return list(by_path.values())


def entries(folder: Folder, problems: list[Problem], *, ending: str = "", broken: bool = False) -> list[Path]:
    """Return the entries of a folder with this ending, sorted by name, without hidden ones.

    ``broken`` is the flag of the problem of a folder that cannot be read.
    """
    try:
        found = sorted(
            entry for entry in folder.path.iterdir() if ending in ("", entry.suffix) and not entry.name.startswith(".")
        )
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        problems.append(Problem(str(folder.path), f"cannot be read: {error.strerror}", broken=broken))
        return []
    if len(found) > MAX_FILES:
        noun = "files" if ending else "entries"
        problems.append(Problem(str(folder.path), f"only the first {MAX_FILES} {noun} are read"))
    return found[:MAX_FILES]


def stamps(files: Iterable[Path]) -> tuple[Stamp, ...]:
    """Return the stamp of each file: they differ after any of the files has changed."""
    return tuple(map(_stamp, files))


def _stamp(file: Path) -> Stamp:
    try:
        found = file.stat()
    except OSError:
        return str(file), 0, -1
    return str(file), found.st_mtime_ns, found.st_size
