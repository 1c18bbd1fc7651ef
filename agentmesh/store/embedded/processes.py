"""Which processes belong to a cluster. No process is trusted or signalled because of a pid file alone.

After a crash, the number in ``postmaster.pid`` may have been given to any other program. The process is our server only
if it is a ``postgres`` that was started with ``-D`` and our folder.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import psutil

_QUIT_SECONDS: Final = 2.0


def postmaster(cluster: Path) -> int | None:
    """Return the process id of the cluster's running server, or None."""
    process = _postmaster(cluster)
    return process.pid if process else None


def stop(cluster: Path, number: signal.Signals, seconds: float) -> bool:
    """Send a signal to the cluster's server; return whether it ended in time (or did not run)."""
    import psutil

    process = _postmaster(cluster)
    if process is None:
        return True
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)  # psutil refuses if the process id was given to another process meanwhile
    return _ended([process], seconds)


def end_leftovers(cluster: Path, uid: int) -> None:
    """End what a dead server left behind: backends without a postmaster, or the server of a folder that was deleted.

    PostgreSQL would refuse to start beside them. Call it only if the pid file names no running postmaster.
    """
    import psutil

    leftovers = [each for each in psutil.process_iter() if _belongs(each, cluster, uid)]
    for number in (signal.SIGQUIT, signal.SIGKILL):
        for process in leftovers:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        if _ended(leftovers, _QUIT_SECONDS):
            return


def _ended(of: list[psutil.Process], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while any(_alive(each) for each in of):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _postmaster(cluster: Path) -> psutil.Process | None:
    import psutil

    try:
        number = int((cluster / "postmaster.pid").read_text(encoding="utf-8", errors="replace").split("\n", 1)[0])
        process = psutil.Process(number)
        return process if _alive(process) and _serves(process, cluster) else None
    except (OSError, ValueError, OverflowError, psutil.Error):
        return None


def _alive(process: psutil.Process) -> bool:
    """Return whether it runs; a zombie does not, though the system still knows its number."""
    import psutil

    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _serves(process: psutil.Process, cluster: Path) -> bool:
    words = process.cmdline()
    if not words or Path(words[0]).name not in {"postgres", "postmaster"} or "-D" not in words[:-1]:
        return False
    return os.path.realpath(words[words.index("-D") + 1]) == os.path.realpath(cluster)


def _belongs(process: psutil.Process, cluster: Path, uid: int) -> bool:
    import psutil

    try:
        if process.name() != "postgres" or process.uids().effective != uid or not _alive(process):
            return False
        return _serves(process, cluster) or process.cwd() == str(cluster)
    except psutil.Error:
        return False
