"""Output of commands: kept within a limit while it arrives, and cleaned for a model."""

from __future__ import annotations

import re

from agentmesh.domain.text import clip

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC, DCS, SOS, PM, APC: titles, links
    r"|\x1b[ -/]*[0-~]?"  # two-byte escapes
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffd]+")
_OVERWRITTEN = re.compile(r"^[^\n]*\r(?=[^\n\r])", re.MULTILINE)
"""Anchored at a line's beginning: tried from each character, a line of 64 KiB takes seconds, and blocks all threads."""


_SHOWN_LINES = 5
_SHOWN_WIDTH = 200


class Capture:
    """The head and the tail of a stream of bytes; keeps only about ``limit`` of them in memory."""

    def __init__(self, limit: int) -> None:
        self._half = max(limit // 2, 1)
        self._limit = limit
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    @property
    def truncated(self) -> bool:
        """Whether bytes of the middle were dropped."""
        return self._total > len(self._head) + len(self._tail) or len(self._tail) > self._half

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self._total += len(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 4 * self._half:
            del self._tail[: -self._half]

    def newest(self, size: int) -> bytes:
        """Return at most so many of the last bytes, from the beginning of a line if one begins in them."""
        before = b"" if self.truncated else self._head[-size:]
        kept = bytes((before + self._tail)[-size:])
        first = kept.find(b"\n") + 1
        return kept[first:] if self._total > size and first < len(kept) else kept

    def raw(self) -> bytes:
        """Return the bytes kept; the whole stream unless :attr:`truncated`."""
        return bytes(self._head + self._tail)

    def text(self) -> str:
        """Return text for a model, at most ``limit`` bytes of UTF-8, with a note where the middle was cut."""
        if not self.truncated:
            return clip(clean(self.raw()), self._limit)
        tail = bytes(self._tail[-self._half :])
        dropped = self._total - len(self._head) - len(tail)
        note = f"\n[... {dropped} bytes cut ...]\n"
        room = max((self._limit - len(note)) // 2, 0)
        return _first(clean(bytes(self._head)), room) + note + _last(clean(tail.lstrip(_CONTINUATION)), room)


_CONTINUATION = bytes(range(0x80, 0xC0))


def last_lines(raw: bytes) -> str:
    """Return the last lines of output as people see them while it goes on; long lines lose their ends."""
    lines = clean(raw).rstrip("\n").split("\n")[-_SHOWN_LINES:]
    return "\n".join(line[:_SHOWN_WIDTH] for line in lines)


def clean(raw: bytes) -> str:
    """Decode output without escape sequences and control characters.

    A progress line keeps only its last state; a run of invalid bytes becomes one U+FFFD.
    """
    text = _ESCAPES.sub("", raw.decode("utf-8", "replace")).replace("\r\n", "\n")
    text = _OVERWRITTEN.sub("", text)
    return _CONTROLS.sub(lambda run: "\ufffd" if "\ufffd" in run[0] else "", text)


def _first(text: str, size: int) -> str:
    return text.encode("utf-8", "replace")[:size].decode("utf-8", "ignore")


def _last(text: str, size: int) -> str:
    return text.encode("utf-8", "replace")[-size:].decode("utf-8", "ignore") if size else ""
