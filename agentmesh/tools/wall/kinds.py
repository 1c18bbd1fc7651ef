"""The kinds of walls, whether this machine can build them, and how a command is started behind one."""

from __future__ import annotations

import base64
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agentmesh.domain.text import one_line
from agentmesh.tools.wall import bubblewrap, confine, landlock, seatbelt, seccomp
from agentmesh.tools.wall.view import View, approved_view, reading_view

_SECONDS: Final = 10.0
"""Time limit for trying out one kind of wall."""
_FILE_CAPABILITIES: Final = sum(1 << number for number in (0, 1, 3, 4, 5, 6, 7, 10))
"""Bits of ``linux/capability.h`` for the capabilities that bubblewrap.py names: CHOWN, DAC_OVERRIDE, FOWNER, FSETID,
KILL, SETGID, SETUID and NET_BIND_SERVICE."""


@dataclass(frozen=True, slots=True)
class Walled:
    """How to run a command."""

    argv: list[str]
    env: dict[str, str]
    confine: dict[str, Any] | None = None
    """What ``wall/confine.py`` applies to the process before it executes ``argv``."""
    note: str = ""
    """Note about the wall for the model, if the command fails; empty without a wall."""
    warning: str = ""
    """Why there is no wall, unless that was reported before."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of wall that this machine may be able to build."""

    name: str
    try_out: Callable[[], str]
    """Returns why it does not work here; empty if it works."""


def first_that_works(wanted: str) -> tuple[str, str]:
    """Return the kind of wall to build and no problem, or no kind and why each does not work."""
    problems = []
    for kind in _kinds():
        if wanted in ("auto", kind.name):
            problem = kind.try_out()
            if not problem:
                return kind.name, ""
            problems.append(problem)
    return "", "; ".join(problems) or f"sandbox.wall is {wanted}, which this system does not have"


def _kinds() -> tuple[_Kind, ...]:
    known = {
        "Darwin": (_Kind("seatbelt", _try_seatbelt),),
        "Linux": (_Kind("bubblewrap", _try_bubblewrap), _Kind("landlock", _try_landlock)),
    }
    return known.get(platform.system(), ())


def _try_bubblewrap() -> str:
    program = bubblewrap.program()
    if not program:
        return "bubblewrap (bwrap) is not installed"
    if not seccomp.supported():
        return f"the system calls of {os.uname().machine} are not known"
    return _tried("bubblewrap", "bubblewrap does not work on this machine")


def _try_landlock() -> str:
    if not seccomp.supported():
        return f"the system calls of {os.uname().machine} are not known"
    if not confine.landlock_version():
        return "the kernel has no Landlock"
    return _tried("landlock", "Landlock does not work on this machine")


def _try_seatbelt() -> str:
    return "" if os.access(seatbelt.PROGRAM, os.X_OK) else f"{seatbelt.PROGRAM} is missing"


def _tried(kind: str, failed: str) -> str:
    """Build both walls of a kind around a command that does nothing; return the problem, or an empty string."""
    with tempfile.TemporaryDirectory(prefix="agentmesh-") as folder:
        here = Path(folder)
        for reading in (True, False):
            seen = (
                reading_view(here, os.environ, hidden=(), withheld=(), temporary=folder)
                if reading
                else approved_view(here, writable=(), hidden=(), withheld=(), network=not reading, temporary=folder)
            )
            walled = built(kind, ["/bin/sh", "-c", ":"], {}, seen, "")
            try:
                tried = subprocess.run(
                    [sys.executable, "-I", "-S", confine.__file__, json.dumps(walled.confine), *walled.argv],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    env={},
                    timeout=_SECONDS,
                    check=False,
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                return f"{failed}: {one_line(str(error), 200)}"
            if tried.returncode:
                said = tried.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
                words = one_line(said, 200).removeprefix("bwrap: ").rstrip(".")
                return f"{failed}: {words or f'exit code {tried.returncode}'}"
    return ""


def built(kind: str, argv: Sequence[str], env: dict[str, str], seen: View, note: str) -> Walled:
    """Return a command behind a wall of a kind."""
    if kind == "bubblewrap":
        return Walled([*bubblewrap.arguments(bubblewrap.program(), seen), *argv], env, _beside_mounts(seen), note)
    if kind == "seatbelt":
        return Walled([*seatbelt.arguments(seen), *argv], env, None, note)
    version = confine.landlock_version()
    rules = seccomp.Filter(
        reading=seen.reading,
        namespaces=False,
        network=seen.network,
        signals=version >= landlock.SCOPED_VERSION,
        truncate=version >= landlock.TRUNCATE_VERSION,
    )
    how = {
        "capabilities": 0 if seen.reading else _FILE_CAPABILITIES,
        "landlock": landlock.ruleset(seen, version),
        "seccomp": base64.b64encode(seccomp.program(rules)).decode(),
    }
    return Walled(list(argv), env, how, note)


def _beside_mounts(seen: View) -> dict[str, Any]:
    """Return the further limits of a command behind bubblewrap's mounts; bubblewrap loads the filter itself, last."""
    rules = seccomp.Filter(reading=seen.reading, namespaces=True)
    scope = landlock.scope_only(confine.landlock_version())
    return {
        "landlock": scope if seen.network else None,  # without its own network it could reach abstract sockets
        "filter": base64.b64encode(seccomp.program(rules)).decode(),
    }
