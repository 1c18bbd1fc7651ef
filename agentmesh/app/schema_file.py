"""A JSON Schema in a file, as people give it to a fork."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

from agentmesh.domain import jsontext
from agentmesh.domain.errors import UsageError
from agentmesh.domain.text import one_line

_MOST_BYTES: Final = 1024 * 1024
"""A file that is longer is no schema; the exact limit is looked at later."""


def read_schema(path: str, *, stdin: bool = False) -> dict[str, Any]:
    """Return the JSON Schema in a file; with ``stdin``, ``-`` is the standard input. Raise UsageError."""
    name = one_line(path, 120)
    try:
        if stdin and path == "-":
            text = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise UsageError(f"{name} is too long for a schema.", hint="The limit is 32 KiB.")
        found = jsontext.parse(text)
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror or error}.", hint="Check the path.") from error
    except ValueError as error:
        raise UsageError(f"{name} is no JSON: {one_line(str(error), 120)}.", hint="Look at it there.") from error
    if not isinstance(found, dict):
        raise UsageError(f"{name} is no JSON Schema: it has no object.", hint='Write {"type": "object", ...}.')
    return found
