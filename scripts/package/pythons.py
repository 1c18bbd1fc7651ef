"""Finds the Pythons of this machine that the package is for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13", "3.14")

_ASK = "import sys, ensurepip, venv; print('%d.%d' % sys.version_info[:2])"


def find() -> dict[str, Path]:
    """Return one interpreter for each version that is here and can make an environment."""
    found: dict[str, Path] = {}
    for version, python in _candidates():
        if version not in found and _version_of(python) == version:
            found[version] = python
    return found


def _candidates() -> Iterator[tuple[str, Path]]:
    """Yield what may be an interpreter of a version: this one, PATH's, then pyenv's, newest first."""
    yield f"{sys.version_info.major}.{sys.version_info.minor}", Path(sys.executable)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for version in VERSIONS:
        if on_path := shutil.which(f"python{version}"):
            yield version, Path(on_path)
        installed = sorted(pyenv.glob(f"{version}.*"), key=lambda folder: folder.name.split(".")[-1].zfill(3))
        yield from ((version, folder / "bin" / "python") for folder in reversed(installed))


def _version_of(python: Path) -> str:
    """Ask an interpreter; a shim of pyenv may be there and run nothing."""
    try:
        asked = subprocess.run([python, "-I", "-c", _ASK], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout.strip()
