"""JSON on its way into a jsonb parameter, free of what PostgreSQL cannot hold."""

from __future__ import annotations

import json
from typing import Any

from psycopg.types.json import Jsonb

from agentmesh.domain.text import storable_json

_encode = json.JSONEncoder(ensure_ascii=False).encode


def jsonb(value: Any) -> Jsonb:
    """Return the value as a parameter, cleaned by ``storable_json``; it is written when the statement runs."""
    return Jsonb(value, dumps=_dumps)


def _dumps(value: Any) -> bytes:
    """Return the text: whether it needs cleaning shows in it, so that not every string has to be looked at."""
    text = _encode(value)
    try:
        if "\\u0000" not in text:
            return text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        pass
    return _encode(storable_json(value)).encode()
