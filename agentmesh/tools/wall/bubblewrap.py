"""bubblewrap around the commands of agents: no network, and nothing that can be written but the working directory.

Everything can still be read, as without it. What could lead out by a Unix socket is hidden: /run, and the folder of the
embedded server. Each command has a /tmp of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentmesh.config.schema import Sandbox as SandboxSettings
from agentmesh.domain.text import one_line
from agentmesh.engine.tool import ToolError

NOTE: Final = (
    "It ran in a sandbox: no network, and nothing can be written but the working directory and a /tmp of its own."
)

_HIDDEN: Final = ("/tmp", "/run")  # noqa: S108  hidden, not used
_SECONDS: Final = 10.0
"""For the one look whether it works."""
_DROPPED: Final = frozenset({"SSH_AUTH_SOCK", "TMPDIR", "TEMP", "TMP"})


@dataclass(frozen=True, slots=True)
class Wrapped:
    """How a command is to be run."""

    argv: list[str]
    env: dict[str, str]
    inside: bool = False
    """It runs in the sandbox."""
    warning: str = ""
    """Why it does not, where that has not been said yet."""


class Sandbox:
    """What the configuration says about commands, and whether this machine can do it: looked at once."""

    def __init__(self, settings: SandboxSettings, hidden: Sequence[Path] = ()) -> None:
        self._mode = settings.bash
        self._hidden = tuple(os.path.realpath(path) for path in (*_HIDDEN, *map(str, hidden)))
        self._lock = threading.Lock()
        self._problem: str | None = None
        self._warned = False

    def wrap(self, argv: Sequence[str], workdir: Path, env: Mapping[str, str]) -> Wrapped:
        """Return the command as it is to be run; raise ToolError where it must not run without a sandbox."""
        if self._mode == "off":
            return Wrapped(list(argv), dict(env))
        problem = self.problem()
        if not problem:
            kept = {name: value for name, value in env.items() if name not in _DROPPED}
            return Wrapped([*arguments(_program(), workdir, self._hidden), "--", *argv], kept, inside=True)
        if self._mode == "required":
            raise ToolError(
                f"Commands may only run in a sandbox, and there is none here: {problem}.",
                "Do without commands; the user can install bubblewrap, or set sandbox.bash in the configuration.",
            )
        # Critical section: one command says it, not one of each agent.
        with self._lock:
            first, self._warned = not self._warned, True
        return Wrapped(
            list(argv),
            dict(env),
            warning=f"There is no sandbox here ({problem}): commands run without." if first else "",
        )

    def problem(self) -> str:
        """Return why commands cannot be run in a sandbox here; empty where they can."""
        with self._lock:
            if self._problem is None:
                self._problem = _look(self._hidden)
            return self._problem


def arguments(program: str, workdir: Path, hidden: Sequence[str]) -> list[str]:
    """Return bubblewrap's own part of a command line; what is hidden are real paths of directories."""
    here = os.path.realpath(workdir)
    return [
        program,
        *("--unshare-net", "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--cap-drop", "ALL"),
        *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
        *_emptied(path for path in hidden if not _below(path, here)),
        *("--bind", here, here),
        *_emptied(path for path in hidden if _below(path, here) and path != here),
        *("--chdir", here),
    ]


def _emptied(paths: Iterator[str]) -> Iterator[str]:
    for path in paths:
        if os.path.isdir(path):
            yield from ("--tmpfs", path)


def _below(path: str, folder: str) -> bool:
    return os.path.commonpath([path, folder]) == folder


def _program() -> str:
    # Not by a relative or empty entry of PATH: a file of the working directory must not stand for it.
    path = ":".join(part for part in os.environ.get("PATH", os.defpath).split(":") if part.startswith("/"))
    return shutil.which("bwrap", path=path) or ""


def _look(hidden: Sequence[str]) -> str:
    program = _program()
    if not program:
        return "bubblewrap (bwrap) is not installed"
    with tempfile.TemporaryDirectory(prefix="agentmesh-") as folder:
        try:
            tried = subprocess.run(
                [*arguments(program, Path(folder), hidden), "--", "/bin/sh", "-c", ":"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env={},
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"bubblewrap cannot be run: {one_line(str(error), 200)}"
    if tried.returncode == 0:
        return ""
    said = one_line(tried.stderr.decode("utf-8", "replace"), 200).removeprefix("bwrap: ").rstrip(".")
    return f"bubblewrap does not work on this machine: {said or f'exit code {tried.returncode}'}"
