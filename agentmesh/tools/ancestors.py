"""The processes above this one, as the system reports them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

_PS: Final = "/bin/ps"
_PARENT, _STARTED = 1, 19
"""Fields of /proc/PID/stat, counted after the command's name."""


class Process(NamedTuple):
    """One process above this one."""

    pid: int
    command: tuple[bytes, ...]
    """Its arguments; empty if the system does not show them."""
    age: float | None
    """Seconds since it started; None if the system does not show it."""
    parent: int


def ancestors() -> Iterator[Process]:
    """Yield the processes above this one, the nearest first; the last may be one that has just ended."""
    # Read /proc, because inside a PID namespace getppid() returns 0.
    pid = _linux("self").parent if sys.platform == "linux" else os.getppid()
    seen = set[int]()
    while pid > 0 and pid not in seen:
        seen.add(pid)
        process = _linux(pid) if sys.platform == "linux" else _asked(pid)
        yield process
        pid = process.parent


def _linux(pid: int | Literal["self"]) -> Process:
    folder, number = Path("/proc", str(pid)), os.getpid() if pid == "self" else pid
    try:
        # The command's name, in parentheses, may itself hold blanks and parentheses.
        facts = (folder / "stat").read_bytes().rpartition(b")")[2].split()
        command = tuple((folder / "cmdline").read_bytes().split(b"\0"))
    except OSError:  # it has ended, or is hidden
        return Process(number, (), None, 0)
    started = int(facts[_STARTED]) / os.sysconf("SC_CLK_TCK")
    return Process(number, command, time.clock_gettime(time.CLOCK_BOOTTIME) - started, int(facts[_PARENT]))


def _asked(pid: int) -> Process:
    """Ask ps, on systems without /proc."""
    asked = subprocess.run([_PS, "-o", "ppid=,command=", "-p", str(pid)], capture_output=True, check=False)
    parent, _, command = asked.stdout.strip().partition(b" ")
    return Process(pid, tuple(command.split()), None, int(parent) if parent.isdigit() else 0)
