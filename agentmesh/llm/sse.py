"""Decode server-sent events from bytes, as they arrive.

Only CR, LF or CRLF end a line: U+2028 and U+0085 may occur inside JSON, so the bytes are split before they are decoded.
"""

from __future__ import annotations

import re

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class EventTooLong(Exception):
    """The server sent a line or an event that is longer than any chunk of an answer may be."""


class SseDecoder:
    """Turns chunks of a response body into the data of its events."""

    def __init__(self, longest: int) -> None:
        """``longest``: limit in bytes of a line, and of the data of an event."""
        self._longest = longest
        self._pieces: list[bytes] = []
        self._size = 0
        self._data: list[bytes] = []
        self._data_size = 0
        self._first = True
        self._after_cr = False

    def feed(self, chunk: bytes) -> list[str]:
        """Return the data of each event that ``chunk`` completes; raise EventTooLong."""
        if self._size > self._longest or self._data_size > self._longest:
            raise EventTooLong
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            lines = _LINE_END.split(chunk)
        else:
            lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._pieces:
            lines[0] = self._complete(lines[0])
        events = self._events(lines)
        if rest:
            self._pieces.append(rest)
            self._size += len(rest)
        # Return complete events first; the next chunk raises.
        if not events and (self._size > self._longest or self._data_size > self._longest):
            raise EventTooLong
        return events

    def finish(self) -> list[str]:
        """Return the event that the end of the body completes: some servers leave out the last blank line."""
        return self._events([self._complete(b""), b""] if self._pieces else [b""])

    def _complete(self, end: bytes) -> bytes:
        line = b"".join((*self._pieces, end))
        self._pieces.clear()
        self._size = 0
        return line

    def _events(self, lines: list[bytes]) -> list[str]:
        """Return the data of the events that these lines complete. A single loop, because it runs for each token."""
        events: list[str] = []
        data = self._data
        if self._first and lines:
            self._first = False
            lines[0] = lines[0].removeprefix(_BOM)
        for line in lines:
            # Skip comments, ids, retry times and event names: the data has everything we need.
            if line.startswith(b"data:"):
                data.append(line[6:] if line.startswith(b" ", 5) else line[5:])
                self._data_size += len(line)
            elif not line and data:
                events.append(b"\n".join(data).decode("utf-8", "replace"))
                data.clear()
                self._data_size = 0
        return events
