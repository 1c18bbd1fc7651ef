"""Standard input as a command finds it: nothing, a pipe, a file; read without hanging for ever and up to a bound."""

from __future__ import annotations

import codecs
import fcntl
import os
import re
import select
import stat
import sys
from typing import Final, NamedTuple

from agentmesh.cli.talk import say
from agentmesh.domain.errors import Timeout, UsageError
from agentmesh.domain.text import storable

_REMARK: Final = 1.0
"""Seconds after which a person is told that standard input is waited for."""
PATIENCE: Final = 600.0
"""Seconds that an open pipe may stay silent before its first byte: CI and cron hand down some that never end."""
_MESSAGE: Final = 262_144
"""Bytes that a message may have; the database refuses longer ones."""
_PIECE: Final = 65_536
_CUT: Final = "Standard input (only its beginning: it is longer)"
_WITHOUT: Final = "`< /dev/null` runs without it."


class _Read(NamedTuple):
    data: bytes
    is_whole: bool
    """Whether standard input ended there."""


class Piped(NamedTuple):
    """What came through standard input beside a prompt."""

    text: str
    size: int
    """Bytes that were read."""
    is_whole: bool


def has_input() -> bool:
    """Tell whether standard input is a pipe, a socket or a file that can be read; not a terminal or a device."""
    if sys.stdin is None or sys.stdin.closed:
        return False
    try:
        descriptor = sys.stdin.fileno()
        mode = os.fstat(descriptor).st_mode
        is_readable = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE != os.O_WRONLY
    except OSError:
        return False
    return is_readable and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISREG(mode))


def read_input(most: int, patience: float | None = None) -> _Read:
    """Read standard input to its end, or up to so many bytes. Raise Timeout when no first byte comes for so long.

    After a second of silence a person is told what is waited for.
    """
    descriptor, told, data = sys.stdin.fileno(), False, bytearray()
    while len(data) <= most:
        if not told and not _is_ready(descriptor, _REMARK):
            say(f"Waiting for standard input, which is open. {_WITHOUT}")
            told = True
        if patience is not None and not data and not _is_ready(descriptor, max(patience - _REMARK, 0)):
            hint = f"It is open, and nobody writes. {_WITHOUT}"
            raise Timeout(f"standard input gave nothing for {patience:g} s", hint=hint)
        piece = os.read(descriptor, _PIECE)
        if not piece:
            return _Read(bytes(data), True)
        data += piece
    return _Read(bytes(data[:most]), False)


def beside_prompt(patience: float | None) -> Piped | None:
    """Read what is piped into a command beside its prompt; None when there is nothing. Raise UsageError for no text."""
    if not has_input():
        return None
    read = read_input(_MESSAGE, PATIENCE if patience is None else min(patience, PATIENCE))
    text = _text(read)
    return Piped(text, len(read.data), read.is_whole) if text.strip() else None


def joined(prompt: str, piped: Piped) -> str:
    """Return a prompt with what was piped as a part of its own, cut to what a message may hold; a person is told."""
    fence = _fence(piped.text)
    whole = _part(prompt, "Standard input", fence, piped.text.removesuffix("\n"))
    if piped.is_whole and len(whole.encode()) <= _MESSAGE:
        say(f"Standard input goes with the prompt: {piped.size:,} bytes.")
        return whole
    room = _MESSAGE - len(_part(prompt, _CUT, fence, "").encode())
    if room <= 0:
        raise UsageError("The prompt leaves no room for standard input.", hint=f"Shorten it. {_WITHOUT}")
    beginning = piped.text.encode()[:room].decode(errors="ignore")
    say(
        "Standard input is longer than a message may be: only its beginning goes with the prompt, "
        f"{len(beginning.encode()):,} bytes. Agents can read all of it from a file."
    )
    return _part(prompt, _CUT, fence, beginning)


def _part(prompt: str, what: str, fence: str, text: str) -> str:
    return f"{prompt}\n\n{what}:\n\n{fence}\n{text}\n{fence}"


def _fence(text: str) -> str:
    """Return backticks that end no earlier than the text does."""
    return "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))


def _text(read: _Read) -> str:
    """Return what was read as text; raise UsageError for what is none."""
    if b"\0" in read.data:
        raise UsageError("Standard input is no text: it has bytes of value 0.", hint=_WITHOUT)
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    text = decoder.decode(read.data, final=read.is_whole)  # the last character may be cut in two
    if "\ufffd" in text and "\ufffd".encode() not in read.data:
        say("Standard input is not all UTF-8; what is not became U+FFFD.")
    return storable(text)


def _is_ready(descriptor: int, seconds: float) -> bool:
    """Tell whether there is something to read, or the end, within so many seconds."""
    return bool(select.select([descriptor], [], [], seconds)[0])
