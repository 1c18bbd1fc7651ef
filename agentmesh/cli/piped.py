"""Standard input of a command: nothing, a pipe or a file; read with a time limit and a size limit."""

from __future__ import annotations

import codecs
import fcntl
import os
import select
import stat
import sys
from typing import Final, NamedTuple

from agentmesh.cli.talk import say
from agentmesh.domain.errors import Timeout, UsageError
from agentmesh.domain.text import fence, storable

_REMARK: Final = 1.0
"""Seconds after which a message says that standard input is waited for."""
PATIENCE: Final = 600.0
"""Seconds that an open pipe may stay silent before its first byte: CI and cron may pass one that never ends."""
_MESSAGE: Final = 262_144
"""Size limit of a message in bytes; the database refuses longer ones."""
_PIECE: Final = 65_536
_CUT: Final = "Standard input (only its beginning: it is longer)"
_WITHOUT: Final = "`< /dev/null` runs without it."


class _Read(NamedTuple):
    data: bytes
    is_whole: bool
    """Whether standard input ended there."""


class Piped(NamedTuple):
    """Text that was piped in besides a prompt."""

    text: str
    size: int
    """Bytes that were read."""
    is_whole: bool


def has_input() -> bool:
    """Return whether standard input is a pipe, a socket or a file that can be read; not a terminal or a device."""
    if sys.stdin.closed:
        return False
    try:
        descriptor = sys.stdin.fileno()
        mode = os.fstat(descriptor).st_mode
        is_readable = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE != os.O_WRONLY
    except OSError:
        return False
    return is_readable and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISREG(mode))


def read_input(most: int, patience: float | None) -> _Read:
    """Read standard input to its end, or up to ``most`` bytes.

    Raise Timeout if no first byte comes within ``patience`` seconds. After a second of silence a message says what is
    waited for.
    """
    descriptor, told, data = sys.stdin.fileno(), False, bytearray()
    while len(data) <= most:
        if not told and not _is_ready(descriptor, _REMARK):
            say(f"Waiting for standard input, which is open. {_WITHOUT}")
            told = True
        if patience is not None and not data and not _is_ready(descriptor, max(patience - _REMARK, 0)):
            hint = f"It is open, but nothing writes to it. {_WITHOUT}"
            raise Timeout(f"standard input gave nothing for {patience:g} s", hint=hint)
        piece = os.read(descriptor, _PIECE)
        if not piece:
            return _Read(bytes(data), True)
        data += piece
    return _Read(bytes(data[:most]), False)


def beside_prompt(patience: float | None) -> Piped | None:
    """Read text that is piped in besides a prompt; return None if there is none. Raise UsageError for binary data."""
    if not has_input():
        return None
    read = read_input(_MESSAGE, PATIENCE if patience is None else min(patience, PATIENCE))
    text = _text(read)
    return Piped(text, len(read.data), read.is_whole) if text.strip() else None


def joined(prompt: str, piped: Piped) -> str:
    """Return a prompt with the piped text as a separate part, cut to a message's limit; a message reports it."""
    ticks = fence(piped.text)
    whole = _part(prompt, "Standard input", ticks, piped.text.removesuffix("\n"))
    if piped.is_whole and len(whole.encode()) <= _MESSAGE:
        say(f"Standard input goes with the prompt: {piped.size:,} bytes.")
        return whole
    room = _MESSAGE - len(_part(prompt, _CUT, ticks, "").encode())
    if room <= 0:
        raise UsageError("The prompt leaves no room for standard input.", hint=f"Shorten it. {_WITHOUT}")
    beginning = piped.text.encode()[:room].decode(errors="ignore")
    say(
        "Standard input is longer than a message may be: only its beginning goes with the prompt, "
        f"{len(beginning.encode()):,} bytes. Agents can read all of it from a file."
    )
    return _part(prompt, _CUT, ticks, beginning)


def _part(prompt: str, what: str, ticks: str, text: str) -> str:
    return f"{prompt}\n\n{what}:\n\n{ticks}\n{text}\n{ticks}"


def _text(read: _Read) -> str:
    """Decode the bytes that were read; raise UsageError if they are binary."""
    if b"\0" in read.data:
        raise UsageError("Standard input is not text: it has bytes of value 0.", hint=_WITHOUT)
    decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
    text = decoder.decode(read.data, final=read.is_whole)  # the last character may be cut in two
    if "\ufffd" in text and "\ufffd".encode() not in read.data:
        say("Standard input is not all UTF-8; other bytes became U+FFFD.")
    return storable(text)


def _is_ready(descriptor: int, seconds: float) -> bool:
    """Return whether data or the end can be read within ``seconds``."""
    return bool(select.select([descriptor], [], [], seconds)[0])
