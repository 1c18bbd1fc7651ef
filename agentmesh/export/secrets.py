"""Taking secrets out of what leaves the database: what is configured here, and what looks like a key anywhere."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, unquote, urlsplit

if TYPE_CHECKING:
    from agentmesh.config.settings import Settings

REDACTED: Final = "***"

_SHORTEST: Final = 6
"""Characters; shorter values would be found in innocent words."""
_SECRET_NAME: Final = re.compile("KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|COOKIE", re.IGNORECASE)

_SHAPES: Final = re.compile(
    r"""
    -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
    | \b(?:sk|pk|rk|gsk|xai|nvapi|hf|glpat|npm|pypi|dop_v1)[-_](?:(?=[\w-]{0,60}\d)[\w-]{12,}|[A-Za-z]{20,})
    | \b(?:gh[pousr]_|github_pat_)\w{16,}
    | \bxox[abeoprs]-[\w-]{10,}
    | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b
    | \bAIza[\w-]{30,}
    | \beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}
    | (?<=://)[^\s/@:]{0,200}:[^\s/@]{1,200}(?=@)
    | (?i:(?<=\bbearer\ ))[\w.~+/-]{12,}=*
    """,
    re.VERBOSE | re.DOTALL,
)
"""Keys of known makers, private keys, signed tokens, user and password of a URL, what follows ``Bearer``."""
_ASSIGNED: Final = re.compile(
    r"""
    ((?:api[_-]?key|secret|password|passwd|(?:access|auth|private)[_-]?(?:token|key))[\w-]{0,64}\\?["']?\s{0,4}[:=]\s{0,4})
    ( \\?["'][^\s"'\\]{8,}(?=\\?["']) | (?=\S{0,200}\d)[^\s"'\\,;&(){}\[\]]{8,}+(?![\[(]) )
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""What a name that speaks of a secret is set to, as in ``API_KEY=...`` or ``"password": "..."``."""


_QUOTE: Final = 2
"""Characters of a quotation mark, which may be escaped."""


class Redactor:
    """Replaces secrets by ``***`` and counts them."""

    def __init__(self, values: Collection[str] = ()) -> None:
        known = sorted({value for value in values if len(value) >= _SHORTEST}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None
        self.found = 0
        """How many were replaced."""

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        if self._known:
            text = self._count(self._known.subn(REDACTED, text))
        text = self._count(_SHAPES.subn(REDACTED, text))
        return _ASSIGNED.sub(self._assigned, text)

    def _assigned(self, found: re.Match[str]) -> str:
        if REDACTED in found[2]:
            return found[0]
        self.found += 1
        quote = found[2][: found[2].find('"') + 1 or found[2].find("'") + 1]
        return found[1] + (quote if len(quote) <= _QUOTE else "") + REDACTED

    def _count(self, done: tuple[str, int]) -> str:
        text, number = done
        self.found += number
        return text


def configured(settings: Settings, environ: Mapping[str, str]) -> set[str]:
    """Return the secrets that this program was given: keys of providers, passwords of URLs."""
    return set(_configured(settings, environ)) - {""}


def _configured(settings: Settings, environ: Mapping[str, str]) -> Iterator[str]:
    for provider in settings.providers.values():
        yield environ.get(provider.api_key_env or "", "")
        yield from _of_url(provider.base_url)
        for name, value in provider.headers.items():
            if _SECRET_NAME.search(name):
                yield value.removeprefix("Bearer ")
    for url in (settings.database_url, settings.direct_database_url, settings.reader_url):
        yield from _of_url(url or "")


def _of_url(url: str) -> Iterator[str]:
    try:
        parts = urlsplit(url)
        password = parts.password or ""
    except ValueError:
        return
    yield from (password, unquote(password))
    yield from (value for name, value in parse_qsl(parts.query) if _SECRET_NAME.search(name))
