"""Run a command so that nothing of it outlives its call, its agent or the worker; see spawner.py for the other half."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentmesh.domain.cancel import Cancel
from agentmesh.tools import spawner
from agentmesh.tools.output import Capture

CALL_VARIABLE = "AGENTMESH_CALL"
"""Marks everything that a call starts, for the sweep after a guard that was killed itself."""
_OVERDUE = spawner.GRACE + 3.0
"""Seconds past its deadline after which a guard that does not answer is killed."""
_TICK = 1.0
_SWEEP = 2.0
"""Seconds at most for the sweep after a lost guard."""
_DRAIN = 0.2
"""Seconds for output of processes that got away from a guard."""


@dataclass(frozen=True, slots=True)
class FinishedProcess:
    """How a command ended."""

    exit_code: int | None
    """As a shell says it: 128 + n for signal n; None when it cannot be known."""
    output: Capture
    timed_out: bool = False
    stopped: bool = False
    """Its Cancel was set, or its guard was killed, before it ended."""
    left: int = 0
    """Background processes that it left and that were ended with it."""


class Spawner:
    """Starts commands from a small process of its own, which is started at the first and ends with this object."""

    def __init__(self, temporary: Callable[[], str] = str) -> None:
        """``temporary``: returns the directory to remove when the worker is gone and its commands are; or nothing."""
        self._temporary = temporary
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self._close: weakref.finalize[Any, Any] | None = None

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        timeout: float,
        cancel: Cancel,
        output_limit: int,
        stdin: int | None = None,
        confine: Mapping[str, Any] | None = None,
    ) -> FinishedProcess:
        """Run a command to its end, at most ``timeout`` seconds; OSError when it cannot be started.

        Output and errors arrive merged, in order, capped at ``output_limit`` bytes. When this returns, whatever the
        command started is gone. ``confine`` is what wall/confine.py does to it before it executes.
        """
        call = uuid.uuid4().hex
        request = {
            "argv": list(argv),
            "cwd": str(cwd),
            "env": {**env, CALL_VARIABLE: call},
            "timeout": timeout,
            "confine": confine,
        }
        control, output = self.guard(() if stdin is None else (stdin,))
        with contextlib.closing(control), open(output, "rb", buffering=0) as stream:
            watch = _Watch(control, stream.fileno(), Capture(output_limit))
            with contextlib.suppress(OSError):  # a guard that died already says so by end-of-file
                control.sendall(json.dumps(request).encode() + b"\n")
            take_back = cancel.on_set(watch.stop)
            try:
                watch.follow(timeout, cancel)
            finally:
                take_back()
        if watch.guard_lost:
            sweep(f"{CALL_VARIABLE}={call}".encode())
        return watch.finished()

    def close(self) -> None:
        """End the process; commands still running end too."""
        with self._lock:
            if self._close is not None:
                self._close()
            self._close = self._listener = None

    def guard(self, further: Sequence[int] = ()) -> tuple[socket.socket, int]:
        """Ask for a guard; return its control socket and the reading end of its output.

        ``further``: where its command reads from, and where its errors go, if not into its output.
        """
        control, theirs = socket.socketpair()
        output, write = os.pipe()
        try:
            fds = [theirs.fileno(), write, *further]
            # Critical section: at most one start of the process; handing over descriptors does not block.
            with self._lock:
                try:
                    socket.send_fds(self._running(), [b"+"], fds)
                except (BrokenPipeError, ConnectionResetError):  # somebody killed it: start another
                    self._listener = None
                    socket.send_fds(self._running(), [b"+"], fds)
        except OSError:
            control.close()
            os.close(output)
            raise
        finally:
            theirs.close()
            os.close(write)
        return control, output

    def _running(self) -> socket.socket:
        if self._listener is None:
            if self._close is not None:
                self._close()
            ours, theirs = socket.socketpair()
            with theirs:
                process = subprocess.Popen(
                    [
                        sys.executable,
                        "-I",
                        "-S",
                        "-X",
                        "utf8",
                        spawner.__file__,
                        str(theirs.fileno()),
                        self._temporary(),
                    ],
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
                    cwd="/",
                    start_new_session=True,  # Ctrl+C in the terminal is the worker's to answer
                )
            self._close = weakref.finalize(self, _end, ours, process)
            self._listener = ours
        return self._listener


def _end(listener: socket.socket, process: subprocess.Popen[bytes]) -> None:
    listener.close()
    process.wait()


class _Watch:
    """One command as seen from the worker: its output, and what its guard reports."""

    def __init__(self, control: socket.socket, output: int, capture: Capture) -> None:
        self._control = control
        self._output = output
        self._capture = capture
        self._reported = bytearray()
        self._facts: dict[str, Any] = {}
        self._timed_out = False

    @property
    def guard_lost(self) -> bool:
        """Whether the guard ended without its last report."""
        return "cause" not in self._facts and "error" not in self._facts

    def stop(self) -> None:
        """Tell the guard to end the command; called from any thread, also when it has ended."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)

    def follow(self, timeout: float, cancel: Cancel) -> None:
        """Read until the guard is gone and the output has ended."""
        deadline = time.monotonic() + timeout + _OVERDUE
        with selectors.DefaultSelector() as selector:
            selector.register(self._output, selectors.EVENT_READ, self._read_output)
            selector.register(self._control, selectors.EVENT_READ, self._read_report)
            guarded = True
            while selector.get_map() and (now := time.monotonic()) < deadline:
                if guarded and cancel.is_set():
                    deadline = min(deadline, now + _OVERDUE)
                for key, _events in selector.select(min(_TICK, deadline - now)):
                    if not key.data():
                        selector.unregister(key.fileobj)
                        if key.fileobj is self._control:
                            guarded = False
                            deadline = time.monotonic() + _DRAIN
        if guarded:
            self._timed_out = not cancel.is_set()
            self._kill_guard()

    def finished(self) -> FinishedProcess:
        """Return the result; OSError when the command could not be started."""
        if "error" in self._facts:
            raise OSError(self._facts["error"])
        cause = self._facts.get("cause")
        return FinishedProcess(
            exit_code=self._facts.get("exit"),
            output=self._capture,
            timed_out=cause == "timeout" or self._timed_out,
            stopped=cause == "stop" or (cause is None and not self._timed_out),
            left=self._facts.get("left", 0),
        )

    def _read_output(self) -> bool:
        data = os.read(self._output, 1 << 16)
        self._capture.feed(data)
        return bool(data)

    def _read_report(self) -> bool:
        try:
            data = self._control.recv(4096)
        except ConnectionError:
            return False
        self._reported += data
        while b"\n" in self._reported:
            line, _, self._reported = self._reported.partition(b"\n")
            self._facts.update(json.loads(line))
        return bool(data)

    def _kill_guard(self) -> None:
        """End a guard that does not answer (a command may have stopped it)."""
        if "guard" in self._facts:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._facts["guard"], signal.SIGKILL)


def sweep(marker: bytes) -> None:
    """Kill every process whose environment holds the marker, and see it dead; only Linux shows environments."""
    if sys.platform != "linux":
        return
    deadline = time.monotonic() + _SWEEP
    while time.monotonic() < deadline:  # again: a fork may slip between looking and killing
        marked = [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and _is_marked(entry, marker)]
        if not marked:
            return
        for pid in marked:
            with contextlib.suppress(OSError):
                _kill(pid, deadline)


def _is_marked(entry: str, marker: bytes) -> bool:
    try:
        return marker in Path("/proc", entry, "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _kill(pid: int, deadline: float) -> None:
    """Kill a process that is no child of ours, and wait for its end."""
    handle = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        with selectors.DefaultSelector() as selector:
            selector.register(handle, selectors.EVENT_READ)
            selector.select(max(deadline - time.monotonic(), 0))
    finally:
        os.close(handle)
