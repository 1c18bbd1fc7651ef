"""A peer's process and how it is spoken to: one JSON value a line in, one a line out.

Both sides are here: `Peer` starts a module in a peer's environment and asks it, `serve` answers there. Standard library
only, because the peer's environment has nothing of ours.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

_ROOT: Final = Path(__file__).parents[2]
_KEPT: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "XDG_CACHE_HOME", "SSL_CERT_FILE")
"""Of our environment variables; no key of the user's reaches a peer."""


class PeerError(Exception):
    """A peer could not do what it was asked, or has ended."""


class Peer:
    """A peer's process, from here; use it as a context manager."""

    def __init__(self, python: Path, module: str, *arguments: str, variables: Mapping[str, str] | None = None) -> None:
        """``module``: of this checkout, such as ``bench.peers.durable.dbos``; it calls ``serve``."""
        self.name = module.rpartition(".")[2]
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self._said = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115  lives as long as the process
        self._rest = b""
        self._process = subprocess.Popen(
            [str(python), "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            cwd=_ROOT,
            env={**kept, "DO_NOT_TRACK": "1", **(variables or {})},
        )
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._process.stdout, self._said:
            with contextlib.suppress(BrokenPipeError):  # it has ended
                self._process.stdin.close()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """End the process at once: one that hangs would not heed its stdin."""
        self._process.kill()
        self._process.wait()

    def ask(self, value: Any, seconds: float = 120.0) -> Any:
        """Say a value, return the answer; ``PeerError`` with the peer's words if there is none in time."""
        self.say(value)
        return self.hear(seconds)

    def say(self, value: Any) -> None:
        """Say a value; ``hear`` returns the answer."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(value).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None

    def hear(self, seconds: float = 120.0) -> Any:
        """Return the next answer."""
        found = json.loads(self._line(seconds))
        if "error" in found:
            raise PeerError(f"{self.name}: {found['error']}")
        return found["answer"]

    def _line(self, seconds: float) -> bytes:
        assert self._process.stdout is not None
        deadline = time.monotonic() + seconds
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                self.kill()  # a late answer would be taken for the next one's
                raise PeerError(f"{self.name} did not answer within {seconds:g} s")
            more = os.read(self._process.stdout.fileno(), 1 << 16)
            if not more:
                raise self._ended()
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _ended(self) -> PeerError:
        self._process.wait()
        self._said.seek(0)
        last = [line.strip() for line in self._said if line.strip()][-1:]
        return PeerError(f"{self.name} has ended with {self._process.returncode}: {' '.join(last) or 'no word'}")


def serve(answer: Callable[[Any], Any]) -> None:
    """Answer each line of stdin until it ends; an exception is an answer too. What others print goes to stderr."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            found = {"answer": answer(json.loads(line))}
        except Exception as error:  # noqa: BLE001  the other side decides what it means
            found = {"error": f"{type(error).__name__}: {error}"}
        out.write(json.dumps(found) + "\n")
        out.flush()
