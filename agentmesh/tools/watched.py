"""Finds the lines of a command's output that a pattern matches, and keeps the output within a limit."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable

from agentmesh.engine.tool import ToolError
from agentmesh.tools import line_matcher
from agentmesh.tools.output import Capture, clean

_LINE = 1000
"""Bytes of a line that are compared with the pattern."""
_LAST = 5.0
"""Seconds that the last lines may take after the command has ended."""
_PLAIN = re.compile(rb"[\n\t -~]*")
"""Output with nothing to clean in it."""


class LineMatcher:
    """A process that compares lines with a pattern, so that a pattern that never ends stops nothing but itself."""

    def __init__(self, pattern: str) -> None:
        """Start it; raise ToolError for a pattern that is not valid."""
        self._reader: threading.Thread | None = None
        self._partial = bytearray()
        self._is_broken = False
        self._is_killed = False
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-X", "utf8", line_matcher.__file__, pattern],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            start_new_session=True,  # the worker handles Ctrl+C in the terminal
        )
        assert self._process.stdout is not None  # noqa: S101  # both are pipes
        first = self._process.stdout.readline()
        problem = json.loads(first).get("error", "") if first else "it takes too long"
        if problem:
            self.close()
            raise ToolError(
                f"watch is no valid regular expression: {problem}.", "Python's syntax; it is searched in each line."
            )

    def follow(self, on_line: Callable[[str], None], on_end: Callable[[], None], name: str) -> None:
        """Call ``on_line`` on a thread of its own for each line that matches, ``on_end`` if it ends too early."""
        self._reader = threading.Thread(target=self._read, args=(on_line, on_end), name=f"{name} lines", daemon=True)
        self._reader.start()

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the output."""
        whole, newline, rest = (bytes(self._partial) + data).rpartition(b"\n")
        self._partial = bytearray(rest[:_LINE])
        if newline:
            self._write(whole)

    def close(self) -> None:
        """Compare the last line, and end; return when all matches were told, or after a few seconds."""
        if self._partial:
            self._write(bytes(self._partial))
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        if self._reader is not None:
            self._reader.join(_LAST)
        self.kill()
        if self._reader is not None:
            self._reader.join()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def kill(self) -> None:
        """End it at once; any thread may call it."""
        self._is_killed = True
        self._process.kill()
        self._process.wait()

    def _write(self, output: bytes) -> None:
        if self._is_broken or self._process.stdin is None:
            return
        lines = output.split(b"\n")
        if max(map(len, lines)) > _LINE or not _PLAIN.fullmatch(output):
            output = b"\n".join(_cleaned(line) for line in lines)
        try:
            self._process.stdin.write(output + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError):  # it was ended: the pattern took too long, or somebody killed it
            self._is_broken = True

    def _read(self, on_line: Callable[[str], None], on_end: Callable[[], None]) -> None:
        if self._process.stdout is None:
            return
        for raw in self._process.stdout:
            if not raw.endswith(b"\n"):
                break  # it was killed while it wrote
            on_line(str(json.loads(raw).get("line", "")))
        if self._process.wait() and not self._is_killed:
            on_end()


def _cleaned(line: bytes) -> bytes:
    return clean(line.removesuffix(b"\r")[:_LINE]).replace("\n", " ").encode()


class WatchedCapture(Capture):
    """Output kept within a limit, and shown to a matcher while it arrives."""

    def __init__(self, limit: int, matcher: LineMatcher | None) -> None:
        super().__init__(limit)
        self._matcher = matcher
        self.written = 0
        """Bytes in all."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        super().feed(data)
        self.written += len(data)
        if self._matcher and data:
            self._matcher.feed(data)
