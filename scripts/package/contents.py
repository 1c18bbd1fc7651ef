"""Looks into a wheel and an sdist: all of the program is in them, and nothing else is in the wheel."""

from __future__ import annotations

import tarfile
import zipfile
from collections import Counter
from pathlib import Path, PurePosixPath

_FOLDERS = {"agentmesh": "agentmesh", "tui": "agentmesh/tui", "migrations": "agentmesh/_migrations"}
"""Folders of the checkout, and where they are in the wheel."""
_NEEDED = (
    "agentmesh/py.typed",
    "agentmesh/sql/functions/send.sql",
    "agentmesh/sql/queries/agents.sql",
    "agentmesh/sql/views/v_agents.sql",
    "agentmesh/sql/grants.sql",
    "agentmesh/_migrations/env.py",
    "agentmesh/_migrations/versions/0001_baseline.sql",
    "agentmesh/config/types/explore.md",
    "agentmesh/export/page.css",
    "agentmesh/export/page.js",
    "agentmesh/tools/prompts/system.md",
    "agentmesh/tools/prompts/fork.md",
    "agentmesh/tui/screen.tcss",
)
"""One of each kind: should the walk through the checkout ever find nothing, this list still asks for them."""
_IN_SDIST = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "Makefile",
    "requirements/run.txt",
    "tests/conftest.py",
)


class Wrong(Exception):
    """What was built is not what it should be."""


def look(wheel: Path, sdist: Path, root: Path) -> None:
    """Raise Wrong unless both hold what they should."""
    _same(f"{wheel.name} lacks", _program(root) | set(_NEEDED), "has besides", _files(wheel))
    unpacked = _unpacked_names(sdist)
    if lacking := sorted({*_sources(root), *_IN_SDIST} - unpacked):
        raise Wrong(f"{sdist.name} lacks {_some(lacking)}")
    if leaked := sorted(name for name in unpacked if _is_private(name)):
        raise Wrong(f"{sdist.name} has what is nobody's: {_some(leaked)}")


def summary(wheel: Path) -> str:
    """Return how many files of each kind are in the program."""
    kinds = Counter(PurePosixPath(name).suffix or PurePosixPath(name).name for name in _files(wheel))
    return ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())


def _files(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def _unpacked_names(sdist: Path) -> set[str]:
    with tarfile.open(sdist) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def _program(root: Path) -> set[str]:
    """Return what the wheel should hold."""
    return {
        f"{_FOLDERS[folder]}/{rest}"
        for folder, _, rest in (source.partition("/") for source in _sources(root))
    }  # fmt: skip


def _sources(root: Path) -> set[str]:
    return {
        path.relative_to(root).as_posix()
        for folder in _FOLDERS
        for path in (root / folder).rglob("*")
        if path.is_file() and not _is_private(path.relative_to(root).as_posix())
    }


def _is_private(name: str) -> bool:
    """Whether a file is a trace of work: a cache, a hidden file. git's own list of what to leave out is public."""
    parts = PurePosixPath(name).parts
    return "__pycache__" in parts or any(part.startswith(".") and part != ".gitignore" for part in parts)


def _same(lacks: str, wanted: set[str], has: str, found: set[str]) -> None:
    complaints = [
        f"{word} {_some(sorted(names))}" for word, names in ((lacks, wanted - found), (has, found - wanted)) if names
    ]
    if complaints:
        raise Wrong("; ".join(complaints))


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
