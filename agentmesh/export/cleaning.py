"""Clean every value on its way out: remove secrets, then cut long texts, then remove terminal controls."""

from __future__ import annotations

import re
from typing import Any, Final

from agentmesh.domain.text import printable
from agentmesh.export.secrets import Redactor

ROW_CHARACTERS: Final = 16_000
"""Limit of characters for all texts of a row, unless everything is wanted."""
_ALWAYS: Final = 200
"""Characters that each text keeps, so that names, ids and states stay whole."""
_SEQUENCE: Final = re.compile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?)")
"""Sequences that colour text and move cursors: useless on a page, and mere noise without their escape character."""


class Cleaner:
    """Removes secrets, and cuts rows that exceed the limit; counts both."""

    def __init__(self, redactor: Redactor, *, full: bool = False) -> None:
        self._redactor = redactor
        self._limit = None if full else ROW_CHARACTERS
        self.cut = 0
        """How many texts were cut."""

    @property
    def limit(self) -> int | None:
        """Limit of characters per row; None: no limit."""
        return self._limit

    @property
    def redacted(self) -> int:
        """How many secrets were removed."""
        return self._redactor.found

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the row, cleaned."""
        left = _Left(self._limit)
        return {key: self._value(value, left) for key, value in row.items()}

    def text(self, text: str) -> str:
        """Return a text, cleaned."""
        return self._text(text, _Left(self._limit))

    def _value(self, value: Any, left: _Left) -> Any:
        if isinstance(value, str):
            return self._text(value, left)
        if isinstance(value, dict):
            return {self._redactor(str(key)): self._field(str(key), item, left) for key, item in value.items()}
        if isinstance(value, list):
            return [self._value(item, left) for item in value]
        return value

    def _field(self, name: str, value: Any, left: _Left) -> Any:
        if isinstance(value, str):
            return self._cut(self._redactor.value(name, value), left)
        return self._value(value, left)

    def _text(self, text: str, left: _Left) -> str:
        return self._cut(self._redactor(text), left)

    def _cut(self, text: str, left: _Left) -> str:
        room = left.take(len(text))
        if room is None or len(text) <= room:
            return text
        self.cut += 1
        return f"{text[:room]}… [{len(text) - room:,} characters left out]"


class _Left:
    """Characters that a row may still use."""

    def __init__(self, limit: int | None) -> None:
        self._left = limit

    def take(self, wanted: int) -> int | None:
        """Return how many characters a text may have; None: as many as it wants."""
        if self._left is None:
            return None
        room = max(self._left, _ALWAYS)
        self._left = max(0, self._left - wanted)
        return room


def readable(text: str) -> str:
    """Return foreign text for a page: without colours, control and bidi characters."""
    return printable(_SEQUENCE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def line(text: str) -> str:
    """Return foreign text on one readable line."""
    return " ".join(readable(text).split())
