"""Server-sent events from bytes, as they arrive.

Lines end at CR, LF or CRLF and nowhere else: U+2028 and U+0085 may stand inside JSON, so the bytes are split before
they are decoded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class LineTooLong(Exception):
    """The server sent a line longer than any chunk of an answer is."""


class SseDecoder:
    """Turn chunks of a response body into the data of its events."""

    def __init__(self, max_line: int = 16 * 1024 * 1024) -> None:
        self._max_line = max_line
        self._pieces: list[bytes] = []
        self._size = 0
        self._data: list[bytes] = []
        self._first = True
        self._after_cr = False

    def feed(self, chunk: bytes) -> Iterator[str]:
        """Yield the data of each event that ``chunk`` completes; raise LineTooLong."""
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            lines = _LINE_END.split(chunk)
        else:
            lines = chunk.split(b"\n")
        for end in lines[:-1]:
            event = self._line(self._complete(end) if self._pieces else end)
            if event is not None:
                yield event
        self._keep(lines[-1])

    def finish(self) -> Iterator[str]:
        """Yield the event that the end of the body completes: some servers leave out the last blank line."""
        if self._pieces:
            self._line(self._complete(b""))
        event = self._line(b"")
        if event is not None:
            yield event

    def _complete(self, end: bytes) -> bytes:
        line = b"".join((*self._pieces, end))
        self._pieces.clear()
        self._size = 0
        return line

    def _keep(self, rest: bytes) -> None:
        if rest:
            self._pieces.append(rest)
            self._size += len(rest)
            if self._size > self._max_line:
                raise LineTooLong

    def _line(self, line: bytes) -> str | None:
        if self._first:
            self._first = False
            line = line.removeprefix(_BOM)
        if not line:
            if not self._data:
                return None
            event = b"\n".join(self._data).decode("utf-8", "replace")
            self._data.clear()
            return event
        # Comments, ids, retry times and event names say nothing that the data does not.
        if line.startswith(b"data:"):
            self._data.append(line[6:] if line.startswith(b" ", 5) else line[5:])
        return None
