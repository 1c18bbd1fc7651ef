"""``!command``: runs in the person's own shell, in the session's directory; its output is cut in the middle if long."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from agentmesh.domain.cancel import Cancel, CancelReason
from agentmesh.domain.errors import UsageError
from agentmesh.domain.ids import AgentId
from agentmesh.domain.text import clip
from agentmesh.tools.output import clean

_OUTPUT = 64 * 1024
"""Bytes of output that are kept."""
_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""


class ShellResult(NamedTuple):
    """How a command ended."""

    output: str
    exit_code: int
    """As Python says it: -n for signal n."""


class Shells:
    """The commands that run now, one per agent in whose view it was typed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[AgentId, subprocess.Popen[bytes]] = {}
        self._cancels: dict[AgentId, Cancel] = {}
        self._expected: Counter[AgentId] = Counter()
        self._unwanted: set[AgentId] = set()
        """Where a command that is expected was ended before it began."""
        self._closed = False

    def expect(self, agent: AgentId) -> None:
        """Let ``end`` also end a command that is submitted and has not begun, until ``forget``."""
        with self._lock:
            self._expected[agent] += 1

    def forget(self, agent: AgentId) -> None:
        """End what ``expect`` began: the command is over, or was refused."""
        with self._lock:
            self._expected[agent] -= 1
            if not self._expected[agent]:
                del self._expected[agent]
                self._unwanted.discard(agent)

    def run(self, agent: AgentId, command: str, workdir: str, environ: Mapping[str, str]) -> ShellResult:
        """Run a command to its end; raise UsageError when it cannot be started."""
        shell = environ.get("SHELL") or "/bin/sh"
        # A file, not a pipe: what the command leaves in the background must not keep us waiting.
        with tempfile.TemporaryFile() as output:
            with self._lock:
                if agent in self._running or self._closed:
                    raise UsageError("a command still runs here", hint="Esc ends it.")
                if agent in self._unwanted:
                    return ShellResult("", -signal.SIGTERM)
                try:
                    process = subprocess.Popen(
                        [shell, "-c", command],
                        stdin=subprocess.DEVNULL,
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        cwd=workdir,
                        env={**environ, "TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat"},
                        start_new_session=True,
                    )
                except OSError as error:
                    raise UsageError(
                        f"{shell}: {error.strerror}", hint="Set SHELL to a shell that is there."
                    ) from error
                self._running[agent] = process
            try:
                code = process.wait()
            finally:
                with self._lock:
                    del self._running[agent]
            return ShellResult(_text(output.fileno()), code)

    @contextlib.contextmanager
    def cancelling(self, agent: AgentId, cancel: Cancel) -> Iterator[None]:
        """Let ``end`` and ``close`` set ``cancel`` meanwhile, for commands that run in another way."""
        with self._lock:
            if agent in self._cancels or self._closed:
                raise UsageError("a command still runs here", hint="Esc ends it.")
            self._cancels[agent] = cancel
            if agent in self._unwanted:
                cancel.set(CancelReason.INTERRUPT)
        try:
            yield
        finally:
            with self._lock:
                del self._cancels[agent]

    def end(self, agent: AgentId) -> bool:
        """End the command that runs for this agent; return whether there is one."""
        with self._lock:
            process, cancel = self._running.get(agent), self._cancels.get(agent)
            is_expected = process is None and cancel is None and agent in self._expected
            if is_expected:
                self._unwanted.add(agent)
        if cancel is not None:
            cancel.set(CancelReason.INTERRUPT)
        if process is None:
            return is_expected or cancel is not None
        _signal(process, signal.SIGTERM)
        threading.Timer(_GRACE, _signal, (process, signal.SIGKILL)).start()
        return True

    def close(self) -> None:
        """End all commands at once, and start no other; idempotent."""
        with self._lock:
            self._closed = True
            left, cancels = list(self._running.values()), list(self._cancels.values())
        for cancel in cancels:
            cancel.set(CancelReason.INTERRUPT)
        for process in left:
            _signal(process, signal.SIGKILL)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send a signal to the whole group of a command that has not been waited for."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)


def _text(fd: int) -> str:
    """Return the output without escape sequences: its head and tail when it is long."""
    size = os.fstat(fd).st_size
    if size <= 2 * _OUTPUT:
        return clip(clean(os.pread(fd, size, 0)), _OUTPUT)
    head, tail = os.pread(fd, _OUTPUT // 2, 0), os.pread(fd, _OUTPUT // 2, size - _OUTPUT // 2)
    cut = f"\n[... {size - _OUTPUT} bytes cut ...]\n"
    return clean(head) + cut + clean(tail)
