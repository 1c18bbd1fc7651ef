"""Cleaning of foreign text: once at the border to the database, once more at the border to a terminal."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from agentmesh.domain.errors import UsageError

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_UNPRINTABLE = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI}\ud800-\udfff]")
_TICKS = re.compile("`+")
NAME_END = 6
"""Characters that a cut leaves at the end of a name."""


def storable(text: str) -> str:
    """Return text that PostgreSQL can hold: NUL and lone surrogates become U+FFFD."""
    if text.isascii() and "\0" not in text:  # a shortcut for most tokens: a fifth of the time
        return text
    return _UNSTORABLE.sub("\ufffd", text)


def storable_json(value: Any) -> Any:
    """Return a JSON value with every string in it (keys too) cleaned by :func:`storable`.

    Numbers that JSON does not have become words: "NaN", "Infinity", "-Infinity".
    """
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    if isinstance(value, dict):
        return {storable(str(key)): storable_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable_json(item) for item in value]
    return value


def printable(text: str) -> str:
    """Return text safe for a terminal: no control, escape or bidi characters except newline and tab."""
    return _UNPRINTABLE.sub("", text.replace("\r\n", "\n"))


def visible(text: str) -> str:
    """Return the text with characters that a terminal would obey or hide written out, so a person sees all of it."""
    if printable(text) == text:
        return text
    return "".join(one if printable(one) == one else f"\\u{ord(one):04x}" for one in text)


def bytes_of(text: str) -> int:
    """Return how many bytes a text takes in the database."""
    return len(text.encode("utf-8", "replace"))


def one_line(text: str, width: int = 80) -> str:
    """Return the text on one printable line of at most ``width`` characters, cut with an ellipsis."""
    line = " ".join(printable(text).split())
    return line if len(line) <= width else line[: max(width - 1, 0)] + "…"


def shortened_name(name: str, width: int) -> str:
    """Return a name of at most ``width`` characters; a cut keeps the end, where names of siblings often differ."""
    end = min(NAME_END, width // 2)
    return name if len(name) <= width else f"{name[: max(width - end - 1, 0)]}…{name[len(name) - end :]}"


def fence(text: str, least: int = 3) -> str:
    """Return a fence for Markdown: more backticks than the text has in a row, so that it cannot close it."""
    return "`" * max(least, 1 + max(map(len, _TICKS.findall(text)), default=0))


def clip(text: str, limit: int) -> str:
    """Return text of at most ``limit`` UTF-8 bytes: head and tail, with a note where the middle was cut."""
    text = storable(text)
    raw = text.encode()
    if len(raw) <= limit:
        return text
    note = f"\n[... {len(raw) - limit} bytes cut ...]\n"
    keep = max(limit - len(note.encode()) - 8, 2) // 2
    head = raw[:keep].decode("utf-8", "ignore")
    tail = raw[-keep:].decode("utf-8", "ignore")
    return head + note + tail


def as_text(value: object, what: str) -> str:
    """Return a text, or a number or boolean as its JSON text; raise UsageError, naming ``what``, for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return json.dumps(value)
    raise UsageError(f"{what} should be text, not {type(value).__name__}", hint="Write it as one string.")
