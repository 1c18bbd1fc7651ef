"""URLs as rules that restrict compare them: another spelling of a forbidden one must not get through."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

_PORTS = {"http": 80, "https": 443}


def canonical(url: str) -> str:
    """Return the plain spelling of a URL; what is none comes back as it is."""
    try:
        split = urlsplit(url.strip())
        port, host = split.port, split.hostname or ""
        host = host if host.isascii() else host.encode("idna").decode()
    except ValueError:
        return url
    shown = "" if port in (None, _PORTS.get(split.scheme)) else f":{port}"
    query = f"?{split.query}" if split.query else ""
    return f"{split.scheme}://{host.rstrip('.')}{shown}{unquote(split.path) or '/'}{query}"
