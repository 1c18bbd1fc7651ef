"""How to start a Python of our own in a session's directory, which may hold anything: nothing of it is imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import agentmesh
from agentmesh.tools.environment import absolute

_SEARCHED: Final = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH")
"""Lists of folders in which an empty or relative entry means the working directory."""
_FOLDERS: Final = ("PYTHONHOME", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX")
"""Single folders from which Python takes code."""
_DROPPED: Final = ("PYTHONPATH", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONBREAKPOINT", *_FOLDERS)


def command(*words: str) -> list[str]:
    """Return the command that runs ``agentmesh`` in this Python, without its working directory on the import path."""
    return [sys.executable, "-P", "-m", "agentmesh", *words]


def environment(environ: Mapping[str, str], directory: Path) -> dict[str, str]:
    """Return the variables for such a process, without those that could run code of a session's directory."""
    kept = {name: value for name, value in environ.items() if name not in _DROPPED}
    kept |= {name: absolute(environ[name]) for name in _SEARCHED if name in environ}
    kept |= {name: environ[name] for name in _FOLDERS if name in environ and _is_outside(environ[name], directory)}
    if path := list(dict.fromkeys(_path(environ.get("PYTHONPATH", ""), directory))):
        kept["PYTHONPATH"] = os.pathsep.join(path)
    return kept


def _path(given: str, directory: Path) -> Iterator[str]:
    """Yield absolute folders outside the directory, and the one in which this program itself was found."""
    home = Path(agentmesh.__file__).resolve().parent.parent
    entries = [entry for entry in given.split(os.pathsep) if entry]
    for entry in entries:
        if _is_outside(entry, directory):
            yield entry
    if _holds(home, entries) or _holds(home, sys.path[:1]):
        yield str(home)


def _holds(home: Path, entries: Iterable[str]) -> bool:
    return any(Path(entry).resolve() == home for entry in entries)


def _is_outside(entry: str, directory: Path) -> bool:
    return entry.startswith("/") and not Path(entry).resolve().is_relative_to(directory.resolve())
