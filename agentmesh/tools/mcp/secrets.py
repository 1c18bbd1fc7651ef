"""Values of the environment in a server's settings: put in when it starts, taken out of all that it says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}")
_SECRET_NAME: Final = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|COOKIE|(^|_)PAT($|_)", re.IGNORECASE)
_SHORTEST: Final = 6
"""Characters below which a value is too common to be taken out."""


class MissingVariable(Exception):
    """A variable is not set that a server's settings name; the text is its name."""


class Secrets:
    """Fills in ``${NAME}`` and ``${NAME:-default}``, and remembers what must not be seen again."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._found: dict[str, str] = {}

    def filled(self, text: str, *, within: str = "") -> str:
        """Return the text with its variables; ``within`` is the name of the header or variable that it is for.

        Raise MissingVariable.
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
            for part in result.split():  # `Bearer abc`: the word before it is none
                self._remember(part, within)
        return result

    def hidden(self, text: str) -> str:
        """Return text in which every secret is replaced by its name."""
        for value in sorted(self._found, key=len, reverse=True):
            text = text.replace(value, f"[{self._found[value]}]")
        return text

    def _remember(self, value: str, name: str) -> None:
        if len(value) >= _SHORTEST:
            self._found.setdefault(value, name)
