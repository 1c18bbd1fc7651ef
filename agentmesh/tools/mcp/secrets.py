"""Values of the environment in a server's settings: filled in when it starts, removed from all of its output."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}")
_SECRET_NAME: Final = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|COOKIE|(^|_)PAT($|_)", re.IGNORECASE)
_SHORTEST: Final = 6
"""Shortest value that is removed: shorter ones are too common."""


class MissingVariable(Exception):
    """A variable that a server's settings name is not set; the text is its name."""


class Secrets:
    """Fills in ``${NAME}`` and ``${NAME:-default}``, and remembers the values that must not be shown."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._found: dict[str, str] = {}

    def filled(self, text: str, *, within: str = "") -> str:
        """Return the text with its variables filled in; raise MissingVariable.

        ``within`` is the name of the header or variable that the text is for.
        """

        def value(found: re.Match[str]) -> str:
            name, default = found[1], found[2]
            known = self._environ.get(name) or default
            if known is None:
                raise MissingVariable(name)
            if _SECRET_NAME.search(name):
                self._remember(known, name)
            return known

        result = _REFERENCE.sub(value, text)
        if _SECRET_NAME.search(within):
            for part in result.split():  # `Bearer abc`: "Bearer" is too short to be hidden
                self._remember(part, within)
        return result

    def hidden(self, text: str) -> str:
        """Return text with every secret replaced by its name."""
        for value in sorted(self._found, key=len, reverse=True):
            text = text.replace(value, f"[{self._found[value]}]")
        return text

    def _remember(self, value: str, name: str) -> None:
        if len(value) >= _SHORTEST:
            self._found.setdefault(value, name)
