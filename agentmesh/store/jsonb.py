"""JSON for jsonb parameters, without the characters that PostgreSQL cannot store, and JSON as it is read."""

from __future__ import annotations

import json
from typing import Any

from psycopg.types.json import Jsonb

from agentmesh.domain.text import storable_json

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def jsonb(value: Any) -> Jsonb:
    """Return the value as a parameter, cleaned by ``storable_json``; it is encoded when the statement runs."""
    return Jsonb(value, dumps=_dumps)


def json_text(value: Any) -> str:
    """Return the value as the text of a jsonb parameter, cleaned by ``storable_json``.

    The encoded text shows whether it needs cleaning, so that not every string has to be looked at.
    """
    try:
        text = _encode(value)
    except ValueError:  # a number that JSON does not have
        return _encode(storable_json(value))
    if "\\u0000" in text or not (text.isascii() or _is_unicode(text)):
        return _encode(storable_json(value))
    return text


def _is_unicode(text: str) -> bool:
    """Whether the text has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _dumps(value: Any) -> bytes:
    return json_text(value).encode()
