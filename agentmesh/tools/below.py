"""What only a person may do is refused to commands that agents run: whatever those start, and whatever they unset."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from agentmesh.domain.errors import UsageError
from agentmesh.domain.text import one_line
from agentmesh.store import workers
from agentmesh.store.tx import Database
from agentmesh.tools.environment import AGENT_VARIABLE

_HINT = "An agent cannot allow itself anything: say in your answer what you need, and the user decides."


def require_person(database: Database, host: str, what: str, environ: Mapping[str, str] = os.environ) -> None:
    """Raise UsageError when this process runs below a worker of this host; ``what`` is what only a person may do."""
    if agent := environ.get(AGENT_VARIABLE):
        raise UsageError(f"only a person may {what}, and this runs below agent {one_line(agent, 40)}", hint=_HINT)
    alive = {row["pid"]: row["id"] for row in database.run(workers.alive, idempotent=True) if row["host"] == host}
    above = next((pid for pid in _ancestors() if pid in alive), None)
    if above is not None:
        raise UsageError(
            f"only a person may {what}, and this runs below worker {alive[above]} (pid {above})", hint=_HINT
        )


def _ancestors() -> Iterator[int]:
    """Yield the pids above this process, the nearest first."""
    pid, seen = os.getppid(), set[int]()
    while pid > 0 and pid not in seen:
        yield pid
        seen.add(pid)
        pid = _parent(pid)


def _parent(pid: int) -> int:
    """Return a process's parent; 0 when it has none or has ended."""
    try:
        if Path("/proc/self/stat").exists():
            # The command's name, in parentheses, may hold blanks and parentheses.
            return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
        asked = subprocess.run(["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, check=False, text=True)
        return int(asked.stdout)
    except (OSError, ValueError, IndexError):
        return 0
