"""Remove secrets from data that leaves the database: those configured here, and texts that look like secrets.

The rules of kingfisher (decision 0026), which others maintain, find keys of known makers. The patterns here find what a
library of keys leaves to its users: a value that a name, a header or an option marks as secret, whatever its form.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from agentmesh.config.api_keys import key_of

if TYPE_CHECKING:
    from kingfisher_sdk import Scanner

    from agentmesh.config.settings import Settings

REDACTED: Final = "***"

_SHORTEST: Final = 6
"""Characters; shorter values would occur in innocent words."""
_SECRET_NAME: Final = re.compile("KEY|TOKEN|SECRET|PASS|PWD|CREDENTIAL|AUTH|COOKIE", re.IGNORECASE)
_ESCAPED: Final = re.compile(r"""\\+([nrt"'/])""")
"""JSON escapes of line ends and quotation marks: the letter after the backslash is not part of the next word."""

_SHAPES: Final = re.compile(
    r"""
    -----BEGIN\ [A-Z ]*PRIVATE\ KEY(?:\ BLOCK)?-----.*?(?:-----END\ [A-Z ]*PRIVATE\ KEY(?:\ BLOCK)?-----|\Z)
    | (?:(?<![A-Za-z0-9_])|(?<=\\[nrt])) (?:
        (?:sk|pk|rk|gsk|xai|nvapi|hf|glpat|npm|pypi|dop_v1)[-_](?:(?=[\w-]{0,60}\d)[\w-]{12,}|[A-Za-z]{20,})
      | (?:gh[pousr]_|github_pat_)\w{16,}
      | xox[abeoprs]-[\w-]{10,}
      | (?:AKIA|ASIA)[0-9A-Z]{16}\b
      | AIza[\w-]{30,}
      | ya29\.[\w-]{20,}
      | eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}
    )
    | (?<=://)[^\s/@:]{0,200}:[^\s/@]{1,200}(?:@[^\s/@?\#]{1,200}){0,9}(?=@)
    | (?i:(?<=\bbearer\ ))[\w.~+/-]{12,}=*
    | (?:(?<=AccountKey=)|(?<=AccessKey=))[\w+/]{20,}={0,2}
    """,
    re.VERBOSE | re.DOTALL,
)
"""Keys of known makers, private keys, signed tokens, user and password of a URL, and text after ``Bearer``."""

_QUOTED: Final = r"""\\{0,3}["']"""
_NAMED: Final = re.compile(
    rf"""
    ( (?:api[_-]?key|secret|passw(?:or)?d|passphrase|pwd|token|(?<=[_-])pass|credential
        |(?:access|auth|private|account|signing|encryption)[_-]?key)
      [\w-]{{0,64}}(?:{_QUOTED})?\s{{0,4}}(?:[:=]|=>)\s{{0,4}})
    ( {_QUOTED}(?![$<{{%])[^\s"'\\]{{8,}}(?={_QUOTED}) | (?=\S{{0,200}}\d)[^\s"'\\,;&(){{}}\[\]<>$]{{8,}}+(?![\[(]) )
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""The value of a name that indicates a secret, as in ``API_KEY=...`` or ``"password": "..."``."""
_HARMLESS: Final = re.compile(
    r"tokens|token_?(?:count|limit|type|usage|budget|ize|id\b)|_(?:env|name|file|path|var|variable)\b", re.IGNORECASE
)
"""Names about a model's tokens, or about the place of a secret."""
_EXPORTED: Final = re.compile(
    r"""((?:\b|(?<=\\[nrt]))(?:[A-Z0-9]+_)+(?:TOKEN|SECRET|PASS|PASSWORD|PASSWD|PWD|PASSPHRASE|CREDENTIALS?)=\\{0,3}["']?)"""
    r"""([^\s"'\\$<>{}(*]{6,})"""
)
"""An environment variable that is set; its value need not contain a digit."""
_HEADER: Final = re.compile(
    rf"""
    ( (?:\b|(?<=\\[nrt]))(?:proxy-)?authorization(?:{_QUOTED})?\s{{0,4}}[:=]\s{{0,4}}(?:{_QUOTED})?
      (?:[A-Za-z][\w-]{{1,20}}\ +)? )
    ( (?=[^\s"']{{0,400}}[\d=])[\w.~+/:=-]{{8,}} )
    | ( (?:\b|(?<=\\[nrt]))(?:set-)?cookie2?(?:{_QUOTED})?\s{{0,4}}[:=]\s{{0,4}}(?:{_QUOTED})? )
      ( [\w.%-]+=[^\r\n"'\\]{{4,}} )
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""Headers that carry credentials."""
_OPTION: Final = re.compile(
    r"""
    ( \bcurl\b[^\r\n|;]{0,400}?\s(?:-u|--user|-U|--proxy-user)[ =]{0,4}\\{0,3}["']? )
      ( [^\s:"'\\$<]{1,100}:[^\s"'\\]{1,200} )
    | ( (?<![\w-])--?(?:[a-z]+-)?(?:password|passwd|pass|token|secret|api-?key)(?:=|[ ]+)\\{0,3}["']? )
      ( (?=[^\s"']{0,200}[\d!@\#%^&*+=/])[^\s"'\\$<>{}()\[\]-][^\s"'\\$<>{}()\[\]]{3,} )
    """,
    re.VERBOSE,
)
"""Options of commands that take a secret."""


class Redactor:
    """Replaces secrets by ``***`` and counts them."""

    def __init__(self, values: Collection[str] = (), *, library: bool = False) -> None:
        """``library``: use kingfisher's rules too. Loading them takes a second and 65 MB, so logs do without."""
        self._library = library
        known = sorted({value for value in values if len(value) >= _SHORTEST}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None
        self.found = 0
        """How many were replaced."""

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        if self._known:
            text = self._count(self._known.subn(REDACTED, text))
        text = self._count(_SHAPES.subn(REDACTED, text))
        text = self._by_names(text)
        return self._keys(text) if self._library else text

    def value(self, name: str, text: str) -> str:
        """Return the value of a field without secrets; the field's name may mark the whole value as one."""
        text = self(text)
        if _SECRET_NAME.search(name) and "\n" not in text:
            for field in (f'{name}: "{text}"', f"{name}={text}", f"{name}: {text}"):
                if text and text not in self._by_names(field):
                    return REDACTED
        return text

    def _by_names(self, text: str) -> str:
        for pattern in (_HEADER, _OPTION, _EXPORTED, _NAMED):
            text = pattern.sub(self._assigned, text)
        return text

    def _keys(self, text: str) -> str:
        """Replace the library's findings, including keys after escapes, which hide where a key begins."""
        found = set(_found(text))
        if "\\" in text:
            found |= set(_found(_ESCAPED.sub(r" ", text)))
        for secret in sorted(found, key=len, reverse=True):
            self.found += text.count(secret)
            text = text.replace(secret, REDACTED)
        return text

    def _assigned(self, found: re.Match[str]) -> str:
        name, value = (group for group in found.groups() if group is not None)
        if REDACTED in value or _HARMLESS.search(name):
            return found[0]
        self.found += 1
        quote = re.match(_QUOTED, value)
        return name + (quote[0] if quote else "") + REDACTED

    def _count(self, done: tuple[str, int]) -> str:
        text, number = done
        self.found += number
        return text


def _found(text: str) -> Iterator[str]:
    """Yield the secrets that the library finds in a text, as written there."""
    if len(text) < _SHORTEST:
        return
    raw = text.encode("utf-8", "replace")
    for finding in _scanner().scan(raw):
        place = finding.location
        secret = raw[place["start_offset"] : place["end_offset"]].decode("utf-8", "ignore")
        if finding.visible and len(secret) >= _SHORTEST and secret != REDACTED:
            yield secret


@cache
def _scanner() -> Scanner:
    # Reading the compiled rules takes a second, and compiling them the first time longer: do it only for an export.
    from kingfisher_sdk import Rules, Scanner

    return Scanner(Rules())


def configured(settings: Settings, environ: Mapping[str, str]) -> set[str]:
    """Return the secrets that this program was given: keys of providers, passwords in URLs."""
    return set(_configured(settings, environ)) - {""}


def _configured(settings: Settings, environ: Mapping[str, str]) -> Iterator[str]:
    for name, provider in settings.providers.items():
        yield from (environ.get(provider.api_key_env or "", ""), key_of(environ, name, provider))
        yield from _of_url(provider.base_url)
        for header, value in provider.headers.items():
            if _SECRET_NAME.search(header):
                yield value.removeprefix("Bearer ")
    for url in settings.database_urls:
        yield from _of_url(url)


def _of_url(url: str) -> Iterator[str]:
    try:
        parts = urlsplit(url)
        password = parts.password or ""
    except ValueError:
        return
    yield from (password, unquote(password))
    yield from (value for name, value in parse_qsl(parts.query) if _SECRET_NAME.search(name))
