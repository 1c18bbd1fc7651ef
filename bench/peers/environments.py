"""Environments of the peers: each is made once, from pinned versions, in a cache folder; none touches our own.

`requirements/NAME.txt` says what is in it. When that file or this Python changes, the environment is made anew.
"""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from platformdirs import user_cache_path

REQUIREMENTS: Final = Path(__file__).parent / "requirements"
_PATIENCE: Final = 900.0
_STAMP: Final = "made-from"
"""Written last, so an environment without it is half made."""


_spent: list[float] = []


def seconds_spent() -> float:
    """Return how long this process has made environments: that is no part of a measurement."""
    return sum(_spent)


class NotInstalledError(Exception):
    """A peer's environment cannot be made: it is not measured."""


def environment(
    name: str, folder: Path | None = None, requirements: Path = REQUIREMENTS, base: Path = Path(sys.executable)
) -> Path:
    """Return the python of a peer's environment, made first if need be; ``folder`` is by default the user's cache.

    ``base``: the Python that it is made with, for a peer that needs a newer one.
    """
    folder = folder or user_cache_path("agentmesh") / "bench-peers"
    source = requirements / f"{name}.txt"
    try:
        pins = source.read_text()
    except FileNotFoundError:
        raise NotInstalledError(f"{name} has no file {source}") from None
    made_from = hashlib.sha256(f"{sys.version if base == Path(sys.executable) else base}\n{pins}".encode()).hexdigest()
    place = folder / name
    python = place / "bin" / "python"
    with _alone(folder, name):
        stamp = place / _STAMP
        if not stamp.exists() or stamp.read_text() != made_from or not python.exists():
            stamp.unlink(missing_ok=True)
            print(f"making the environment of {name} in {place}", file=sys.stderr, flush=True)
            began = time.monotonic()
            pip = [str(python), "-m", "pip"]
            without: list[str] = []
            if find_spec("pip"):  # ours installs for it too, and unpacking another one takes longer than most peers
                pip, without = [sys.executable, "-m", "pip", "--python", str(place)], ["--without-pip"]
            _run(name, [str(base), "-m", "venv", "--clear", *without, str(place)])
            _run(name, [*pip, "install", "--quiet", "--requirement", str(source)])
            stamp.write_text(made_from)
            _spent.append(time.monotonic() - began)
    return python


@contextmanager
def _alone(folder: Path, name: str) -> Iterator[None]:
    """Keep other benchmarks from making the same environment at once."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(name: str, command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        raise NotInstalledError(f"{name} was not installed within {_PATIENCE:g} s") from None
    if done.returncode:
        said = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        # pip's first complaint says what is wrong, those after it what follows from it
        why = next((line for line in said if line.startswith("ERROR:")), said[-1] if said else "no reason given")
        raise NotInstalledError(f"{name} cannot be installed: {why.removeprefix('ERROR:').strip()}")
