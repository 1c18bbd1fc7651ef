"""JSON that somebody else wrote: a model, a server, a person, a file of a project."""

from __future__ import annotations

import json
from typing import Any, Final

DEEPEST: Final = 200
"""How many lists and objects may be within each other: as many as pydantic reads. What walks a value can walk them."""


def parse(text: str | bytes, *, strict: bool = True, written: bool = False) -> Any:
    """Return what a JSON text says; raise ValueError for what is none or nests deeper than DEEPEST.

    A model that repeats itself writes thousands of brackets, for which ``json.loads`` raises RecursionError. With
    ``strict=False`` strings may have line breaks in them. With ``written`` numbers are texts, as they were written.
    """
    words = text.decode("utf-8-sig") if isinstance(text, bytes) else text
    try:
        if written:
            value = json.loads(words, strict=strict, parse_int=str, parse_float=str, parse_constant=str)
        else:
            value = json.loads(words) if strict else json.loads(words, strict=False)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    if words.count("[") + words.count("{") > DEEPEST and isinstance(value, dict | list) and _is_deeper(value):
        raise ValueError(_TOO_DEEP)
    return value


_TOO_DEEP: Final = f"more than {DEEPEST} lists or objects within each other"


def _is_deeper(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return bool(level)
