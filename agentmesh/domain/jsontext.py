"""JSON as text: read from outside (a model, a server, a person, a file of a project), and written for outside."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

DEEPEST: Final = 200
"""The deepest nesting of lists and objects: pydantic's limit, which recursive code can walk."""


def parse(text: str | bytes) -> Any:
    """Return the value of a JSON text; raise ValueError if it is not JSON or nests deeper than DEEPEST.

    A model that repeats itself writes thousands of brackets, and ``json.loads`` raises RecursionError for them.
    """
    return _parsed(text.decode("utf-8-sig") if isinstance(text, bytes) else text)


def parse_unique(text: str, *, strict: bool = True) -> Any:
    """Parse likewise; raise ValueError also if an object has a key twice.

    With ``strict=False`` strings may have line breaks in them.
    """
    return _parsed(text, strict=strict, object_pairs_hook=_once)


def parse_numbers_as_texts(text: str) -> Any:
    """Parse likewise, but leave each number as the text that was written."""
    return _parsed(text, parse_int=str, parse_float=str, parse_constant=str)


def parse_any_number(text: str) -> Any:
    """Parse likewise, but leave a number as a text if Python cannot hold it (see ``number``)."""
    return _parsed(text, parse_int=number, parse_float=number, parse_constant=number)


def parse_stored(text: str | bytes) -> Any:
    """Return the value of a column, which is JSON for sure; a whole number that Python does not read becomes a text."""
    try:
        return json.loads(text)
    except ValueError:  # more than 4,300 digits; parse_int is slow, and would be called for each number of each row
        return json.loads(text, parse_int=number)


def _parsed(text: str, **options: Any) -> Any:
    try:
        value = json.loads(text, **options)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if text.count("[") + text.count("{") > DEEPEST and isinstance(value, dict | list):
        refuse_deeper(value)
    return value


def whole(text: str) -> str:
    """Return a JSON text with U+FFFD in place of each half of a character that is written as an escape.

    A program that cuts a text in the middle of an emoji writes one, as ``\\ud83d``; pydantic takes that for no JSON.
    """
    return _ESCAPE.sub(lambda found: r"\ufffd" if found["half"] else found[0], text) if _HALF.search(text) else text


_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")
_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def number(text: str) -> int | float | str:
    """Return the number that is written; the text itself if no finite number of Python is it, as for ``1e400``."""
    try:
        value = int(text) if text.removeprefix("-").isdecimal() else float(text)
        return value if math.isfinite(value) else text
    except (ValueError, OverflowError):  # Python reads at most 4300 digits of an integer, and 308 have a float
        return text


_TOO_DEEP: Final = f"more than {DEEPEST} lists or objects within each other"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice in an object")
    return found


def refuse_deeper(value: dict[str, Any] | list[Any]) -> None:
    """Raise ValueError if a value nests deeper than DEEPEST."""
    if is_too_deep(value):
        raise ValueError(_TOO_DEEP)


def is_too_deep(value: dict[str, Any] | list[Any]) -> bool:
    """Whether a value nests deeper than DEEPEST."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


_UNSAFE: Final = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ud800-\udfff]")
"""What JSON allows as it is, but a terminal acts on, some readers take for the end of a line, or no encoding has."""


def line(value: Any, *, ascii_only: bool = False) -> str:
    """Return a value as one line of JSON that is safe to print; ids and times become text, in UTC."""
    text = json.dumps(value, ensure_ascii=ascii_only, default=_plain)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def text_or_json(value: Any) -> str:
    """Return a text as it is, and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plain(value: object) -> Any:
    match value:
        case UUID():
            return str(value)
        case datetime():
            return value.astimezone(UTC).isoformat()
        case Decimal():
            return float(value)
    raise TypeError(f"no JSON for {type(value).__name__}")
