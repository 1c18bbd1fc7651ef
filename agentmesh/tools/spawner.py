"""Start commands for a worker, and end them in every case; runs alone, as ``python -I -S spawner.py FD FOLDER``.

The worker has many threads, so it must not fork, and PR_SET_PDEATHSIG would follow the one thread that spawned. This
process has one thread. For each command it forks a *guard*. The guard is a child subreaper, so every descendant of the
command stays below it, whatever session or group it moves to. The guard holds one end of a socket whose other end only
the worker holds. When the worker dies, even by ``kill -9``, the guard reads end-of-file and ends the command.

Standard library only, and nothing of agentmesh: it must start in milliseconds and hold none of the worker's secrets.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.machinery
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from types import ModuleType
from typing import Any

_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_LINUX = sys.platform == "linux"
GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL for a command that must stop."""
_LEFTOVER_GRACE = 0.5
"""The same, for processes that an ended command left in the background."""
_GIVE_UP = 10.0
"""Seconds after SIGKILL until it gives up on processes that cannot be killed (another user's, stuck in the kernel)."""


def _load_confine() -> ModuleType:
    """Load ``wall/confine.py`` by its path: this process cannot import anything of agentmesh by name."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wall", "confine.py")
    loader = importlib.machinery.SourceFileLoader("confine", path)
    module = ModuleType(loader.name)
    loader.exec_module(module)
    return module


_CONFINE = _load_confine()


def main(listener: socket.socket, temporary: str) -> None:
    """Fork a guard for each set of descriptors received, until the worker is gone; then remove its temporary files.

    A set is the control socket, the output and, optionally, the input and the errors.
    """
    if _LINUX:
        # If a command kills its guard, its processes stay below the worker. The guards' memory is closed to other
        # processes.
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        _prctl(_PR_SET_DUMPABLE, 0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the guards
    while True:
        message, fds, _flags, _address = socket.recv_fds(listener, 1, 4)
        if not message:
            break
        if os.fork() == 0:
            listener.close()
            _guard(socket.socket(fileno=fds[0]), *fds[1:])
            os._exit(0)
        for fd in fds:
            os.close(fd)
    if temporary:
        _remove(temporary)


def _remove(folder: str) -> None:
    """Remove a directory once the last guard has ended, and with it the last command that wrote there."""
    import shutil

    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    shutil.rmtree(folder, ignore_errors=True)


def _guard(control: socket.socket, output: int, stdin: int | None = None, errors: int | None = None) -> None:
    """Run the one command that ``control`` asks for, report on it, and end every process that it started.

    Without ``errors``, its errors go to its output.
    """
    os.setsid()
    wake_read, wake_write = os.pipe()
    for fd in (wake_read, wake_write):
        os.set_blocking(fd, False)
    signal.signal(signal.SIGCHLD, lambda _signal, _frame: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    if _LINUX:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    request = _request(control)
    if request is None:
        return
    try:
        child = _start(request, stdin, output, errors)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        _report(control, error=str(error))
        return
    for own in (output, stdin, errors):
        if own is not None:
            os.close(own)
    _report(control, guard=os.getpid())
    family = _Family(child.pid)
    cause = _watch(control, wake_read, family, float(request["timeout"]))
    if cause == "exit":
        _report(control, exit=family.exit_code)
    left = family.end(GRACE if cause != "exit" else _LEFTOVER_GRACE)
    _report(control, exit=family.exit_code, cause=cause, left=left if cause == "exit" else 0)
    child.returncode = family.exit_code or 0  # reaped by us: Popen has nothing to wait for


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _start(request: dict[str, Any], stdin: int | None, output: int, errors: int | None) -> subprocess.Popen[bytes]:
    """Start the command, confined first if the request says so."""
    how = request.get("confine")
    argv, descriptors = _CONFINE.with_filter(request["argv"], how) if how else (request["argv"], [])
    try:
        return subprocess.Popen(
            argv,
            cwd=request["cwd"],
            env=request["env"],
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=output,
            stderr=output if errors is None else errors,
            start_new_session=True,
            pass_fds=descriptors,
            preexec_fn=(lambda: _CONFINE.confine(how)) if how else None,  # noqa: PLW1509  there is one thread
        )
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _watch(control: socket.socket, wake: int, family: _Family, timeout: float) -> str:
    """Wait until the command ends, its time is over, or the worker stops it or is gone; return which."""
    deadline = time.monotonic() + timeout
    while True:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return "timeout"
        ready, _, _ = select.select([control.fileno(), wake], [], [], remaining)
        if wake in ready:
            os.read(wake, 4096)
        family.reap()
        if family.exit_code is not None:
            return "exit"
        if control.fileno() in ready:
            return "stop"


class _Family:
    """The command and all its descendants."""

    def __init__(self, leader: int) -> None:
        self._leader = leader
        self.exit_code: int | None = None
        """The command's own exit code, 128 + n for signal n; None while it runs."""
        self._childless = False

    def reap(self) -> None:
        """Reap children that have ended, adopted ones too."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._childless = True
                return
            if pid == 0:
                return
            if pid == self._leader:
                code = os.waitstatus_to_exitcode(status)
                self.exit_code = code if code >= 0 else 128 - code

    def end(self, grace: float) -> int:
        """End every process with SIGTERM, then after ``grace`` seconds with SIGKILL; return how many there were."""
        first = self._signal(signal.SIGTERM, signal.SIGCONT)
        if self._gone_within(grace, None):
            return first
        self._gone_within(_GIVE_UP, signal.SIGKILL)
        return first

    def _gone_within(self, seconds: float, again: signal.Signals | None) -> bool:
        deadline = time.monotonic() + seconds
        pause = 0.002
        while self._alive():
            if time.monotonic() > deadline:
                return False
            if again is not None:
                self._signal(again)  # repeat: a fork may slip in between looking and killing
            time.sleep(pause)
            pause = min(pause * 2, 0.05)
        return True

    def _alive(self) -> bool:
        self.reap()
        if _LINUX:
            return not self._childless
        return self._signal() > 0

    def _signal(self, *signals: signal.Signals) -> int:
        if not _LINUX:
            return _signal_group(self._leader, signals)
        self.reap()
        if self._childless:
            return 0
        pids = _descendants(os.getpid())
        for pid in pids:
            for number in signals:
                try:
                    os.kill(pid, number)
                except (ProcessLookupError, PermissionError):
                    break
        return len(pids)


def _signal_group(leader: int, signals: tuple[signal.Signals, ...]) -> int:
    """Signal the command's process group, on systems without /proc; return 1 while it has members."""
    try:
        for number in signals or (0,):
            os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return 0
    return 1


def _descendants(root: int) -> list[int]:
    """Return the living (not zombie) processes below ``root``, from one pass through /proc."""
    children: dict[int, list[int]] = {}
    zombies = set()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except (OSError, ValueError):
            continue  # it has ended meanwhile
        children.setdefault(int(parent), []).append(int(entry))
        if state in (b"Z", b"X"):
            zombies.add(int(entry))
    found: list[int] = []
    todo = [root]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return [pid for pid in found if pid not in zombies]


def _request(control: socket.socket) -> dict[str, Any] | None:
    """Read the one line of JSON that says what to run; return None if the worker is gone."""
    pieces: list[bytes] = []
    while not pieces or not pieces[-1].endswith(b"\n"):
        piece = control.recv(1 << 16)
        if not piece:
            return None
        pieces.append(piece)
    request: dict[str, Any] = json.loads(b"".join(pieces))
    return request


def _report(control: socket.socket, **facts: Any) -> None:
    """Report to the worker; if it is gone, do nothing."""
    try:
        control.sendall(json.dumps(facts).encode() + b"\n")
    except OSError:
        return


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])
