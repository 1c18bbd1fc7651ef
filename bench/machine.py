"""What the figures were measured on, and who else used its processors meanwhile."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import psycopg

PROC = Path("/proc")
_TICK = os.sysconf("SC_CLK_TCK")


def facts(url: str, folder: Path) -> dict[str, str]:
    """Describe machine and versions; the folder is the server's, the URL leads to it."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "select version(), string_agg(name || '=' || current_setting(name), ', ' order by name) from pg_settings"
            " where name in ('fsync', 'synchronous_commit', 'shared_buffers', 'max_connections', 'wal_sync_method')"
        ).fetchone()
    assert row is not None
    return {
        "measured": time.strftime("%Y-%m-%d %H:%M %Z"),
        "processor": f"{os.cpu_count()} × {_first('/proc/cpuinfo', 'model name') or platform.processor() or '?'}",
        "memory": _memory(),
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "disk": _filesystem(folder),
        "PostgreSQL": str(row[0]).split(" on ")[0] + f"; {row[1]}; Unix socket",
        "Python": platform.python_version(),
        "psycopg": f"{version('psycopg')} ({psycopg.pq.__impl__}), libpq {psycopg.pq.version()}",
        "openai": version("openai"),
        "commit": _commit(),
    }


@dataclass(frozen=True, slots=True)
class Moment:
    """Processor time used until now; seconds."""

    at: float
    busy: float
    """By everything, steal of the hypervisor included."""
    own: float
    """By this benchmark: its processes, and the database server's."""


class Foreign:
    """Measures what others use of the processors."""

    def __init__(self, servers: Iterable[int]) -> None:
        self._roots = {os.getpid(), *servers}
        self.known = (PROC / "stat").exists()
        """False where the system does not tell (macOS); then no repetition is voided."""

    def now(self) -> Moment:
        """Return the time used until now."""
        if not self.known:
            return Moment(time.monotonic(), 0.0, 0.0)
        ticks = [int(field) for field in (PROC / "stat").read_text().splitlines()[0].split()[1:9]]
        busy = sum(ticks) - ticks[3] - ticks[4]  # all but idle and iowait
        return Moment(time.monotonic(), busy / _TICK, tree_seconds(self._roots))

    def share(self, since: Moment) -> float:
        """Return the share of all processors that others used since, 0 to 1."""
        until = self.now()
        whole = (until.at - since.at) * (os.cpu_count() or 1)
        return max(0.0, ((until.busy - since.busy) - (until.own - since.own)) / whole) if whole else 0.0


def memory(pid: int) -> float:
    """Return the resident bytes of a process; 0 where unknown."""
    shown = _first(f"/proc/{pid}/status", "VmRSS")
    return float(shown.split()[0]) * 1024 if shown else 0.0


def own_memory(pid: int) -> float:
    """Return the resident bytes of a process that it shares with no other; 0 where unknown."""
    try:
        lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(float(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


def tree_seconds(roots: Iterable[int]) -> float:
    """Return the processor time of processes and all their descendants, the dead included; 0 where unknown."""
    if not (PROC / "stat").exists():
        return 0.0
    used: dict[int, float] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for entry in PROC.iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        # After the name: state, ppid, ...; utime, stime, and of the children that ended, cutime, cstime.
        used[int(entry.name)] = sum(int(field) for field in fields[11:15]) / _TICK
        children[int(fields[1])].append(int(entry.name))
    waiting, seen = list(roots), set[int]()
    while waiting:
        pid = waiting.pop()
        if pid not in seen:
            seen.add(pid)
            waiting += children[pid]
    return sum(used.get(pid, 0.0) for pid in seen)


def _first(path: str, key: str) -> str:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "")


def _memory() -> str:
    return f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"


def _filesystem(folder: Path) -> str:
    shown = subprocess.run(["df", "-T", folder], capture_output=True, text=True, check=False).stdout.splitlines()
    return " ".join(shown[-1].split()[:2]) if len(shown) > 1 else "?"


def _commit() -> str:
    here = Path(__file__).parent
    try:
        shown = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=here, capture_output=True, text=True, check=False
        )
    except OSError:
        return "?"
    return shown.stdout.strip() or "?"
