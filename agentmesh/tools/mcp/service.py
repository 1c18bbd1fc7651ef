"""A server's process: guarded like a command of an agent, so that no part of it outlives this program.

The event loop of the MCP thread owns its three pipes and the socket of its guard.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final

from agentmesh.domain.text import one_line
from agentmesh.tools import spawner
from agentmesh.tools.guarded_run import CALL_VARIABLE, Spawner, sweep
from agentmesh.tools.output import clean

_FOREVER: Final = 10 * 365 * 86_400.0
_LONGEST_LINE: Final = 32 * 1024 * 1024
"""Size limit of one message, in bytes; a server that sends more is ended."""
_PIECE: Final = 1 << 16
_LAST_WORDS: Final = 2_000
"""Bytes kept of its error output, and of other text on its output, which is for messages only."""
_POLITE: Final = 1.0
"""Seconds in which a server may end by itself once its input has ended."""
_OVERDUE: Final = spawner.GRACE + 3.0
"""Seconds in which its guard must have ended it."""


class TooLong(Exception):
    """A server sent a message that exceeds the limit."""


class Service:
    """One process that reads messages from its input and writes messages to its output, one per line."""

    def __init__(self, marker: str, control: socket.socket, stdin: int, stdout: int, stderr: int) -> None:
        self._marker = marker
        self._control = control
        self._stdin: int | None = stdin
        self._stdout = stdout
        self._stderr = stderr
        self._facts: dict[str, Any] = {}
        self._errors = b""
        self._rubbish = b""
        self._fault = ""
        self.silent = asyncio.Event()
        """Set when it sends no more messages."""
        self.gone = asyncio.Event()
        """Set when it and all processes that it started are gone."""

    @classmethod
    async def start(cls, spawner: Spawner, argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> Service:
        """Start it; if its program cannot be started at all, that is known once it is gone."""
        starting = asyncio.ensure_future(asyncio.to_thread(_started, spawner, argv, cwd, env))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(_discard)
            raise

    def ending(self) -> str:
        """Return the way in which it ended, in words that can follow its name."""
        if refusal := self._facts.get("error"):
            return f"cannot be started: {one_line(refusal, 300)}"
        if self._fault:
            return self._fault
        code = self._facts.get("exit")
        return f"ended{'' if code is None else f' with exit code {code}'}{self.last_words()}"

    def last_words(self) -> str:
        """Return the end of its other output, in brackets; empty if there was none."""
        words = one_line(clean(self._errors or self._rubbish), 400)
        return f" (its last words: {words})" if words else ""

    def give_up(self, fault: str) -> None:
        """Record a fault that makes it impossible to go on."""
        self._fault = fault

    def heard_rubbish(self, line: bytes) -> None:
        """Remember a line that is not a message: servers print greetings and logs there."""
        self._rubbish = (self._rubbish + line + b"\n")[-_LAST_WORDS:]

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield its output, line by line, until it ends; raise TooLong."""
        pending = bytearray()
        while piece := await _read(self._stdout):
            start = len(pending)
            pending += piece
            if b"\n" in piece:
                *whole, rest = bytes(pending).split(b"\n")
                pending = bytearray(rest)
                for line in whole:
                    yield line
            elif start > _LONGEST_LINE:
                raise TooLong(f"sent a message of more than {_LONGEST_LINE >> 20} MiB, and was ended")

    async def write(self, line: bytes) -> None:
        """Write a line to it; raise OSError if it reads no more."""
        from anyio import wait_writable

        rest = memoryview(line + b"\n")
        while rest:
            if self._stdin is None:
                raise BrokenPipeError
            await wait_writable(self._stdin)
            with contextlib.suppress(BlockingIOError):
                rest = rest[os.write(self._stdin, rest[:_PIECE]) :]

    async def listen(self) -> None:
        """Keep the end of its error output, until that ends."""
        while piece := await _read(self._stderr):
            self._errors = (self._errors + piece)[-_LAST_WORDS:]

    async def attend(self) -> None:
        """Read its guard's reports until the guard and all processes below it are gone."""
        reported = b""
        while piece := await _received(self._control):
            *whole, reported = (reported + piece).split(b"\n")
            for line in whole:
                self._facts |= json.loads(line)
        if "cause" not in self._facts and "error" not in self._facts:  # the guard itself was killed
            await asyncio.to_thread(sweep, f"{CALL_VARIABLE}={self._marker}".encode())
        self.gone.set()

    async def stop(self) -> None:
        """End it: close its input, then have its guard end it; needs :meth:`attend` to run."""
        from anyio import notify_closing

        if self._stdin is not None:
            notify_closing(self._stdin)  # a waiting writer must not wait on the next file with this number
            os.close(self._stdin)
            self._stdin = None
        if await self._is_gone_within(_POLITE):
            return
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
        if not await self._is_gone_within(_OVERDUE) and "guard" in self._facts:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._facts["guard"], signal.SIGKILL)
            await self._is_gone_within(_OVERDUE)

    async def _is_gone_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.gone.wait()
        return self.gone.is_set()

    def close(self) -> None:
        """Close the descriptors that are still open; nobody may be reading any more."""
        for fd in (self._stdin, self._stdout, self._stderr):
            if fd is not None:
                os.close(fd)
        self._stdin = None
        self._control.close()


def _started(spawner: Spawner, argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> Service:
    marker = uuid.uuid4().hex
    request = {"argv": list(argv), "cwd": cwd, "env": {**env, CALL_VARIABLE: marker}, "timeout": _FOREVER}
    theirs, stdin = os.pipe()
    stderr, errors = os.pipe()
    try:
        control, stdout = spawner.guard((theirs, errors))
    except OSError:
        os.close(stdin)
        os.close(stderr)
        raise
    finally:
        os.close(theirs)
        os.close(errors)
    with contextlib.suppress(OSError):  # a guard that died already reports that by end-of-file
        control.sendall(json.dumps(request).encode() + b"\n")
    for fd in (stdin, stdout, stderr):
        os.set_blocking(fd, False)
    control.setblocking(False)
    return Service(marker, control, stdin, stdout, stderr)


def _discard(starting: asyncio.Future[Service]) -> None:
    """Close a service that nobody waits for any more; its guard ends it."""
    if not starting.cancelled() and starting.exception() is None:
        starting.result().close()


async def _read(fd: int) -> bytes:
    from anyio import wait_readable

    while True:
        await wait_readable(fd)
        with contextlib.suppress(BlockingIOError):
            return os.read(fd, _PIECE)


async def _received(control: socket.socket) -> bytes:
    from anyio import wait_readable

    while True:
        await wait_readable(control)
        with contextlib.suppress(BlockingIOError):
            try:
                return control.recv(4096)
            except ConnectionError:
                return b""
