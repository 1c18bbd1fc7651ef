"""Which hosts and addresses ``web_fetch`` may reach: public ones, and those that the user's own configuration names.

A name is resolved once, and the connection goes to the very addresses that were checked. So a name server that gives
another answer a moment later (DNS rebinding) gains nothing.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Final
from urllib.parse import quote, urlsplit

from agentmesh.domain.cancel import Cancel
from agentmesh.domain.text import one_line
from agentmesh.engine.tool import ToolError

Address = tuple[socket.AddressFamily, Any]
"""The address that a socket connects to: its family, and a tuple that begins with the host."""

_PORTS: Final = {"http": 80, "https": 443}
_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
_UNSAFE: Final = re.compile(r"[\x00-\x20\x7f\\]")
_PATH_SAFE: Final = "/%:@!$&'()*+,;=~?[]|"
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_GLOBAL_V6: Final = ipaddress.ip_network("2000::/3")
_SPECIAL: Final = tuple(map(ipaddress.ip_network, ("168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24")))
"""Networks that Python takes for public: a host of virtual machines, IETF assignments, relays (older Pythons)."""


@dataclass(frozen=True, slots=True)
class Target:
    """A URL that may be fetched if its addresses are permitted."""

    scheme: str
    host: str
    """In lower case, as in DNS; an IPv6 address without brackets."""
    port: int
    path: str
    """The path with the query, without the fragment."""

    @classmethod
    def parse(cls, url: str) -> Target:
        """Parse a URL; raise ToolError if it is not a URL, or not one that may be fetched."""
        url = url.strip()
        try:
            split = urlsplit(url)
            port, host = split.port, split.hostname or ""
        except ValueError as error:
            raise _no_url(url) from error
        if "@" in split.netloc:
            raise ToolError(
                "A URL with a user name or password in it is not fetched.", "Leave out everything before the @."
            )
        if split.scheme not in _PORTS or _UNSAFE.search(url):
            raise _no_url(url)
        path = quote(split.path or "/", safe=_PATH_SAFE) + (
            f"?{quote(split.query, safe=_PATH_SAFE)}" if split.query else ""
        )
        port = _PORTS[split.scheme] if port is None else port
        return cls(split.scheme, _host(host, url), port, path)

    @property
    def authority(self) -> str:
        """The Host header: the host, and the port if it is not the scheme's."""
        return self.shown_host if self.port == _PORTS[self.scheme] else f"{self.shown_host}:{self.port}"

    @property
    def shown_host(self) -> str:
        """The host in the form of URLs."""
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def url(self) -> str:
        """The complete URL."""
        return f"{self.scheme}://{self.authority}{self.path}"

    def covers(self, other: Target) -> bool:
        """Whether permission for this URL extends to the other: the same host and port, or its upgrade to https."""
        upgraded = (self.scheme, self.port, other.scheme, other.port) == ("http", 80, "https", 443)
        return self.host == other.host and (upgraded or (self.scheme, self.port) == (other.scheme, other.port))

    def is_named_in(self, hosts: Collection[str]) -> bool:
        """Whether a list of hosts, some with a port, has this one."""
        return any(name in hosts for name in (self.host, self.shown_host, f"{self.shown_host}:{self.port}"))


def _host(host: str, url: str) -> str:
    try:
        if ":" in host and "%" not in host:  # an address with the name of an interface is refused
            return str(ipaddress.IPv6Address(host))
        name = host.rstrip(".") if host.isascii() else host.rstrip(".").encode("idna").decode()
    except ValueError as error:
        raise _no_url(url) from error
    if not _NAME.fullmatch(name):
        raise _no_url(url)
    return name


def _no_url(url: str) -> ToolError:
    return ToolError(
        f"{one_line(url, 200)!r} is not a URL that can be fetched.", "Give a full one: https://example.com/page."
    )


def too_late(target: Target) -> ToolError:
    """Return the error for a host that did not answer in time."""
    return ToolError(f"{target.authority} took too long to answer.", "Pass a longer timeout, or try another page.")


def is_public(address: str) -> bool:
    """Whether an address is on the public internet; an IPv4 address inside an IPv6 one must be public too."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv4Address):
        special = found.is_multicast or found.is_reserved or any(found in network for network in _SPECIAL)
        return found.is_global and not special
    inside = found.ipv4_mapped or found.sixtofour
    if found in _NAT64:
        inside = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
    if inside is not None:
        return is_public(str(inside))
    return found in _GLOBAL_V6 and found.is_global


def permitted(target: Target, allow_private: Collection[str], cancel: Cancel, deadline: float) -> list[Address]:
    """Resolve a target's host and return the addresses that it may connect to; raise ToolError if there are none."""
    found = _resolve(target, cancel, deadline)
    if target.is_named_in(allow_private):
        return found
    public = [address for address in found if is_public(str(address[1][0]))]
    if not public:
        raise ToolError(
            f"{target.shown_host} has no public address, and only public ones are fetched.",
            f'The user can allow it in their own configuration: [web] allow_private = ["{target.authority}"].',
        )
    return public


def _resolve(target: Target, cancel: Cancel, deadline: float) -> list[Address]:
    """Ask the system's resolver, in a thread of its own because nothing can interrupt it."""
    answers: SimpleQueue[list[Address] | OSError | None] = SimpleQueue()

    def ask() -> None:
        try:
            found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            answers.put(OSError(str(error)))
        else:
            answers.put([(family, address) for family, _type, _protocol, _name, address in found])

    take_back = cancel.on_set(lambda: answers.put(None))
    try:
        threading.Thread(target=ask, name=f"resolve {target.host}", daemon=True).start()
        answer = answers.get(timeout=max(deadline - time.monotonic(), 0))
    except Empty:
        raise too_late(target) from None
    finally:
        take_back()
    if answer is None:
        raise ToolError("Interrupted.")
    if isinstance(answer, OSError):
        raise ToolError(f"The host {target.shown_host} cannot be found: {answer}.", "Check how it is written.")
    return answer
