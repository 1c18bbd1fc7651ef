"""Where the log of this process is, for people who read an error and want to know more."""

from __future__ import annotations

import logging
import os
import socket
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

_STDERR: Final = 2
_F_GETPATH: Final = 50
"""From macOS's fcntl: the path of an open file."""


def log_place() -> str:
    """Return a sentence that names the file with this process's log, or the process that prints it."""
    for handler in logging.getLogger("agentmesh").handlers:
        if isinstance(handler, logging.FileHandler):
            return f"{handler.baseFilename} has more."
    if file := _file_of_stderr():
        return f"{file} has more."
    return f"The worker, process {os.getpid()} on {socket.gethostname()}, prints more on stderr."


def _file_of_stderr() -> Path | None:
    """Return the file that stderr goes to, as in a background worker; None for anything else."""
    with suppress(OSError):
        opened = os.fstat(_STDERR)
        if stat.S_ISREG(opened.st_mode):
            path = _path_of_stderr()
            if os.path.samestat(path.stat(), opened):
                return path
    return None


def _path_of_stderr() -> Path:
    if sys.platform == "darwin":
        import fcntl

        return Path(os.fsdecode(fcntl.fcntl(_STDERR, _F_GETPATH, bytes(1024)).rstrip(b"\0")))
    return Path(os.readlink(f"/proc/self/fd/{_STDERR}"))
