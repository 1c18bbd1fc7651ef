"""What every value goes through on its way out: secrets go, then what is too long, then what a screen would obey."""

from __future__ import annotations

import re
from typing import Any, Final

from agentmesh.domain.text import printable
from agentmesh.export.secrets import Redactor

ROW_CHARACTERS: Final = 16_000
"""Of all texts of a row, unless all is wanted."""
_ALWAYS: Final = 200
"""Characters that each text keeps, so that names, ids and states stay whole."""
_SEQUENCE: Final = re.compile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?)")
"""What colours text and moves cursors: of no use on a page, and without its escape character only noise."""


class Cleaner:
    """Takes out secrets, and from long rows what is over the limit; knows how much that was."""

    def __init__(self, redactor: Redactor, *, full: bool = False) -> None:
        self._redactor = redactor
        self._limit = None if full else ROW_CHARACTERS
        self.cut = 0
        """How many texts were cut."""

    @property
    def limit(self) -> int | None:
        """Characters of a row; None: no limit."""
        return self._limit

    @property
    def redacted(self) -> int:
        """How many secrets were taken out."""
        return self._redactor.found

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the row as it may leave."""
        left = _Left(self._limit)
        return {key: self._value(value, left) for key, value in row.items()}

    def text(self, text: str) -> str:
        """Return a text as it may leave."""
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
    """Characters that are left to a row."""

    def __init__(self, limit: int | None) -> None:
        self._left = limit

    def take(self, wanted: int) -> int | None:
        """Return how many of them a text may have; None: all that it wants."""
        if self._left is None:
            return None
        room = max(self._left, _ALWAYS)
        self._left = max(0, self._left - wanted)
        return room


def readable(text: str) -> str:
    """Return foreign text as a page shows it: without colours, control and bidi characters."""
    return printable(_SEQUENCE.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def line(text: str) -> str:
    """Return foreign text on one readable line."""
    return " ".join(readable(text).split())
