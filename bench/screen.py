"""The TUI, or any program with a screen, in a pseudo-terminal: when which bytes came out, and keys that go in."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from bench.machine import memory

CHILD, PARENT = b"\x1b[1;5B", b"\x1b[1;5A"
"""Ctrl+Down and Ctrl+Up."""
PROBE: Final = b"z"
"""A letter that nothing else on the screen has."""

_CLEAR: Final = b"\x15"
"""Ctrl+U: deletes to the start of the line."""
_ROWS, _COLUMNS = 40, 120
_ALTERNATE: Final = b"\x1b[?1049h"
_PATIENCE: Final = 60.0
_RESEND: Final = 0.02
_ROOT: Final = Path(__file__).parent.parent


class Screen:
    """A program from its start to its end; use it as a context manager. Times are monotonic seconds."""

    def __init__(
        self, command: Sequence[str], environ: Mapping[str, str], folder: Path, program: str = sys.executable
    ) -> None:
        """``command``: what follows the program, which is Python unless another is named."""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
        terminal = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONPATH": str(_ROOT), "HOME": str(folder)}
        self.began = time.monotonic()
        self._process = subprocess.Popen(
            [program, *command],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            env=kept | terminal | dict(environ),
            start_new_session=True,
        )
        os.close(slave)
        self._output = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended
            os.killpg(self._process.pid, signal.SIGKILL)  # it leads a session: with it end those that it started
        self._process.wait()
        os.close(self._master)

    @property
    def place(self) -> int:
        """How much has come out so far: what comes later begins here."""
        return len(self._output)

    @property
    def resident(self) -> float:
        """Its memory in MiB."""
        return memory(self._process.pid) / 2**20

    def send(self, keys: bytes) -> float:
        """Press keys; return when."""
        at = time.monotonic()
        os.write(self._master, keys)
        return at

    def until(self, text: bytes, since: int = 0, seconds: float = _PATIENCE) -> float:
        """Wait until these bytes have come out; return when they were read."""
        return self._until(lambda: self._output.find(text, since) >= 0, f"{text!r}", seconds)

    def drain(self, seconds: float) -> None:
        """Read what comes out for so long."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self._read(left)

    def first_key(self, probe: bytes = PROBE) -> float:
        """Press a key from now on until one is shown; return when it was. Nothing else may show that letter."""
        start = self._output.find(_ALTERNATE)
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            self.send(probe)
            try:
                return self.until(probe, start, _RESEND)
            except TimeoutError:
                continue
        raise TimeoutError("no key was taken")

    def echoes(self, count: int, pause: float) -> list[float]:
        """Press a letter again and again, with pauses; return the seconds until each was seen in the input."""
        took = []
        for typed in range(1, count + 1):
            since = self.place
            pressed = self.send(PROBE)
            took.append(self.until(PROBE * typed, since) - pressed)
            self.drain(pause)
        since = self.place
        self.send(_CLEAR)
        self.until(b"/ commands", since)  # the input's hint is back
        return took

    def _until(self, done: Callable[[], bool], what: str, seconds: float) -> float:
        deadline = time.monotonic() + seconds
        while not done():
            left = deadline - time.monotonic()
            if left <= 0 or not self._read(left):
                if time.monotonic() < deadline and self._process.poll() is None:
                    continue
                raise TimeoutError(f"{what} was not shown; the end of what was: {bytes(self._output[-2000:])!r}")
        return time.monotonic()

    def _read(self, seconds: float) -> bool:
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        try:
            piece = os.read(self._master, 1 << 16)
        except OSError:  # it has ended
            return False
        self._output += piece
        return bool(piece)


def tui(url: str, session: object, folder: Path) -> Screen:
    """Start the TUI on a session."""
    return Screen(["-m", "agentmesh", "--resume", str(session)], {"AGENTMESH_DATABASE_URL": url}, folder)
