"""URLs of the web, above all as permission rules see them.

A rule compares scheme, host, port and path, each with its own part of a pattern.
"""

from __future__ import annotations

import fnmatch
import functools
import ipaddress
import posixpath
import re
import socket
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

PORTS: Final = {"http": 80, "https": 443}
_NO_URL: Final = re.compile(r"[\x00-\x20\x7f\\]")
"""Programs disagree about where the host ends in a URL that contains one of these."""
_NAME: Final = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_NUMBERS: Final = re.compile(r"[0-9a-fx.]+")
_PATTERN: Final = re.compile(
    r"(?:(?P<scheme>[a-z*]+)://)?(?P<host>\[[^\]]*\]|[^/:?#\[\]]*)(?::(?P<port>\d+|\*))?(?P<path>[/?].*)?",
    re.IGNORECASE | re.DOTALL,
)
_DECODINGS: Final = 3
"""A chain of servers may decode a path once each."""


@dataclass(frozen=True, slots=True)
class Url:
    """A URL of the web, taken apart."""

    scheme: str
    host: str
    """In lower case, as in DNS, without a dot at its end; an IPv6 address without brackets."""
    port: int
    path: str
    """As it is written, at least ``/``; with the query, without the fragment."""
    has_user: bool = False
    """Whether a user name or password precedes the host."""

    @property
    def site(self) -> str:
        """The scheme, the host and the port, as they stand in a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == PORTS[self.scheme] else f":{self.port}")


@functools.lru_cache(maxsize=256)
def parse_url(url: str) -> Url | None:
    """Take a URL apart; None if it is not a web URL, or if programs read it in different ways."""
    url = url.strip()
    try:
        split = urlsplit(url)
        port, host = split.port, canonical_host(split.hostname or "")
    except ValueError:
        return None
    if split.scheme not in PORTS or not host or _NO_URL.search(url):
        return None
    path = (split.path or "/") + (f"?{split.query}" if split.query else "")
    return Url(split.scheme, host, PORTS[split.scheme] if port is None else port, path, "@" in split.netloc)


def canonical(url: str) -> str:
    """Return the plain spelling of a URL, without user name and password; return any other text unchanged."""
    found = parse_url(url)
    if found is None:
        return url
    path, mark, query = found.path.partition("?")
    return f"{found.site}{unquote(path)}{mark}{query}"


def canonical_host(host: str) -> str:
    """Return the plain spelling of a host; raise ValueError for text that cannot be a host."""
    if ":" in host:
        return str(ipaddress.IPv6Address(host)).lower()
    name = (host if host.isascii() else host.encode("idna").decode()).lower().rstrip(".")
    if not _NAME.fullmatch(name):
        raise ValueError("no name of a host")
    if _NUMBERS.fullmatch(name):
        try:
            return socket.inet_ntoa(socket.inet_aton(name))  # 127.1 and 0x7f000001 are addresses too
        except OSError:
            return name
    return name


def is_openai(url: str) -> bool:
    """Whether the host of a model server's URL is OpenAI's own; other servers accept the same requests."""
    try:
        return urlsplit(url).hostname == "api.openai.com"
    except ValueError:
        return False


def url_allowed(pattern: str, url: str) -> bool:
    """Whether an allow rule's pattern covers a URL: by the same scheme, host and port, and a path below its own."""
    found, wanted = parse_url(url), _parsed_pattern(pattern)
    if found is None or wanted is None or found.has_user:
        return False
    return (
        wanted.has_scheme(found.scheme)
        and wanted.has_host(found.host)
        and wanted.has_port(found, default_only=True)
        and wanted.allows_path(found.path)
    )


def url_restricted(pattern: str, url: str) -> bool:
    """Whether a deny or ask rule's pattern covers a URL, however it is spelled; no scheme and no port are exempt."""
    found, wanted = parse_url(url), _parsed_pattern(pattern)
    if found is None or wanted is None:
        return False
    return wanted.has_host(found.host) and wanted.has_port(found, default_only=False) and wanted.restricts(found.path)


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A rule's pattern of URLs, taken apart."""

    scheme: str
    """``*`` for both."""
    host: re.Pattern[str]
    port: str
    """A number, ``*`` for any, empty for the scheme's own."""
    path: str

    def has_scheme(self, scheme: str) -> bool:
        return self.scheme in ("*", scheme)

    def has_host(self, host: str) -> bool:
        return self.host.fullmatch(host) is not None

    def has_port(self, url: Url, *, default_only: bool) -> bool:
        if not self.port:
            return url.port == PORTS[url.scheme] or not default_only
        return self.port in ("*", str(url.port))

    def allows_path(self, path: str) -> bool:
        if self.path == "/*":
            return True
        # A server may resolve "..", and decode a path more than once: such a path is below no pattern.
        return not _leads_up(path) and _like(path, self.path)

    def restricts(self, path: str) -> bool:
        if self.path in ("/", "/*"):
            return True
        above = self.path.removesuffix("*").rstrip("/")
        patterns = (self.path, above, f"{above}/*", f"{above}?*")
        return any(_like(spelling, one) for spelling in _spellings(path) for one in patterns)


def _like(path: str, pattern: str) -> bool:
    """Compare a path with a pattern: ``*`` stands for anything, every other character for itself."""
    return fnmatch.fnmatchcase(path, pattern.replace("[", "[[]").replace("?", "[?]"))


@functools.lru_cache(maxsize=1024)
def _parsed_pattern(pattern: str) -> _Pattern | None:
    found = _PATTERN.fullmatch(pattern.strip())
    if found is None or "@" in found["host"]:
        return None
    scheme, port = (found["scheme"] or "*").lower(), found["port"] or ""
    if scheme not in ("*", *PORTS):
        return None
    try:
        host = _host_pattern(found["host"])
    except ValueError:
        return None
    if found["scheme"] and port and port == str(PORTS.get(scheme)):
        port = ""
    ends_open = found["path"] is None and pattern.strip().endswith("*")
    return _Pattern(scheme, host, port, _path_pattern(found["path"], ends_open=ends_open))


def _path_pattern(path: str | None, *, ends_open: bool) -> str:
    if path is None:
        return "/*" if ends_open else "/"
    path = path.partition("#")[0]
    return path if path.startswith("/") else f"/{path}"


def _host_pattern(host: str) -> re.Pattern[str]:
    """Compile a pattern of hosts: a ``*`` stays within its label; as the first one it is one or more labels."""
    if host.startswith("["):
        return re.compile(re.escape(canonical_host(host[1:-1])))
    if not host:
        raise ValueError("a pattern of URLs needs a host")
    if "*" not in host:
        return re.compile(re.escape(canonical_host(host)))
    if host == "*":
        return re.compile(r".+")
    first, *labels = host.lower().rstrip(".").split(".")
    start = r"[^.]+(?:\.[^.]+)*" if first in ("*", "**") else _label(first)
    return re.compile(r"\.".join([start, *map(_label, labels)]))


def _label(label: str) -> str:
    if "*" in label:
        return re.escape(label).replace(r"\*", "[^.:]*")
    return re.escape(label if label.isascii() else label.encode("idna").decode())


def _leads_up(path: str) -> bool:
    return any(
        name in (".", "..") for spelling in _decoded(path.partition("?")[0]) for name in re.split(r"[/\\;]", spelling)
    )


def _spellings(path: str) -> set[str]:
    """Return a path as it is written, decoded, and as a server may resolve it, each with and without its query."""
    bare, mark, query = path.partition("?")
    found = {path, bare}
    for decoded in _decoded(bare):
        resolved = posixpath.normpath(re.sub(r"/+", "/", decoded.replace("\\", "/")))
        slash = "/" if decoded.endswith("/") and resolved != "/" else ""
        for spelling in (decoded, resolved + slash):
            found |= {spelling, f"{spelling}{mark}{query}"}
    return found


def _decoded(path: str) -> list[str]:
    """Return a path as it is, decoded once, twice and so on."""
    found = [path]
    for _ in range(_DECODINGS):
        if (decoded := unquote(found[-1])) == found[-1]:
            break
        found.append(decoded)
    return found
