"""Run a command so that no process of it outlives the call, the agent or the worker; spawner.py is the other half."""

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmesh.domain.cancel import Cancel
from agentmesh.tools import spawner
from agentmesh.tools.output import Capture

if TYPE_CHECKING:
    from agentmesh.tools.wall.kinds import Walled

CALL_VARIABLE = "AGENTMESH_CALL"
"""Marks every process that a call starts, for the sweep after its guard was killed."""
_OVERDUE = spawner.GRACE + 3.0
"""Seconds past its deadline after which a guard that does not answer is killed."""
_TICK = 1.0
_SWEEP = 2.0
"""Time limit of the sweep after a lost guard, in seconds."""
_SHOW_AFTER = 0.5
"""Seconds before a command shows what it has written, and between two such moments."""
_SHOWN = 2048
"""Bytes of it."""
_DRAIN = 0.2
"""Seconds to wait for output of processes that escaped from a guard."""


@dataclass(frozen=True, slots=True)
class FinishedProcess:
    """How a command ended."""

    exit_code: int | None
    """As a shell reports it: 128 + n for signal n; None if it cannot be known."""
    output: Capture
    timed_out: bool = False
    stopped: bool = False
    """Its Cancel was set, or its guard was killed, before the command ended."""
    left: int = 0
    """Background processes that the command left behind, and that were ended with it."""


class Spawner:
    """Starts commands from a small process of its own, which runs from the first command until this object ends."""

    def __init__(self, temporary: Callable[[], str] = str) -> None:
        """``temporary`` returns a directory to remove once the worker and its commands are gone, or an empty string."""
        self._temporary = temporary
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self._close: weakref.finalize[Any, Any] | None = None

    def run(
        self,
        command: Walled,
        *,
        cwd: Path,
        timeout: float,
        cancel: Cancel,
        output_limit: int,
        stdin: int | None = None,
        show: Callable[[bytes], None] | None = None,
        capture: Capture | None = None,
    ) -> FinishedProcess:
        """Run a command until it ends, at most ``timeout`` seconds; raise OSError if it cannot be started.

        Output and errors arrive merged, in order, limited to ``output_limit`` bytes. When this returns, every process
        that the command started is gone. ``show`` gets the newest output about twice a second, while the command runs.
        ``capture`` takes the output; by default a new one.
        """
        call = uuid.uuid4().hex
        request = {
            "argv": command.argv,
            "cwd": str(cwd),
            "env": {**command.env, CALL_VARIABLE: call},
            "timeout": timeout,
            "confine": command.confine,
        }
        control, output = self.guard(() if stdin is None else (stdin,))
        with contextlib.closing(control), open(output, "rb", buffering=0) as stream:
            watch = _GuardedCommand(control, stream.fileno(), capture or Capture(output_limit), show)
            with contextlib.suppress(OSError):  # a guard that died already reports that by end-of-file
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
        """End the process; commands that still run end too."""
        with self._lock:
            if self._close is not None:
                self._close()
            self._close = self._listener = None

    def guard(self, further: Sequence[int] = ()) -> tuple[socket.socket, int]:
        """Ask for a guard; return its control socket and the reading end of its output.

        ``further``: the descriptor that its command reads from, then the one for its errors, if they are not part of
        the output.
        """
        control, theirs = socket.socketpair()
        output, write = os.pipe()
        try:
            fds = [theirs.fileno(), write, *further]
            # Critical section: start the process only once; handing over descriptors does not block.
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
                    start_new_session=True,  # the worker handles Ctrl+C in the terminal
                )
            self._close = weakref.finalize(self, _end, ours, process)
            self._listener = ours
        return self._listener


def _end(listener: socket.socket, process: subprocess.Popen[bytes]) -> None:
    listener.close()
    process.wait()


class _GuardedCommand:
    """One command as the worker sees it: its output, and what its guard reports."""

    def __init__(
        self, control: socket.socket, output: int, capture: Capture, show: Callable[[bytes], None] | None
    ) -> None:
        self._show = show
        self._is_new = False
        """Whether output came that was not shown."""
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
        """Tell the guard to end the command; any thread may call it, even after the command has ended."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)

    def follow(self, timeout: float, cancel: Cancel) -> None:
        """Read until the guard is gone and the output has ended."""
        deadline = time.monotonic() + timeout + _OVERDUE
        show_at = time.monotonic() + _SHOW_AFTER
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
                if self._is_new and self._show and guarded and time.monotonic() >= show_at:
                    self._is_new, show_at = False, time.monotonic() + _SHOW_AFTER
                    self._show(self._capture.newest(_SHOWN))
        if guarded:
            self._timed_out = not cancel.is_set()
            self._kill_guard()

    def finished(self) -> FinishedProcess:
        """Return the result; raise OSError if the command could not be started."""
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
        self._is_new = True
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
        """Kill a guard that does not answer (a command may have stopped it)."""
        if "guard" in self._facts:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._facts["guard"], signal.SIGKILL)


def sweep(marker: bytes) -> None:
    """Kill every process whose environment holds the marker, and wait for its end; only Linux shows environments."""
    if sys.platform != "linux":
        return
    deadline = time.monotonic() + _SWEEP
    while time.monotonic() < deadline:  # repeat: a fork may slip in between looking and killing
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
    """Kill a process that is not our child, and wait for its end."""
    handle = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        with selectors.DefaultSelector() as selector:
            selector.register(handle, selectors.EVENT_READ)
            selector.select(max(deadline - time.monotonic(), 0))
    finally:
        os.close(handle)
