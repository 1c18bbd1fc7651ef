"""One HTTP GET for ``web_fetch``: to addresses checked before, limited in time and size, and ended by a Cancel.

It uses the standard library, not the model's client: every connection goes exactly where we say. No proxy, cookie,
password file or other setting of the environment affects it.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import select
import socket
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agentmesh import __version__
from agentmesh.domain.cancel import Cancel
from agentmesh.domain.text import one_line
from agentmesh.engine.tool import ToolError
from agentmesh.tools.web_address import Address, Target, too_late

if TYPE_CHECKING:
    import http.client
    import ssl

MOST_BYTES: Final = 5 << 20
"""Size limit of a body in bytes, both packed and unpacked."""

_CONNECT_SECONDS: Final = 10.0
_ADDRESSES: Final = 4
"""Addresses of a name that are tried."""
_TICK: Final = 0.1
_BLOCK: Final = 1 << 16
_HEADERS: Final = {
    "User-Agent": f"agentmesh/{__version__}",
    "Accept": "text/markdown, text/html;q=0.9, application/json;q=0.9, text/*;q=0.8, */*;q=0.1",
    "Accept-Encoding": "gzip",
    "Connection": "close",
}


@dataclass(slots=True)
class WebResponse:
    """A server's answer; the body arrives when it is read."""

    status: int
    reason: str
    location: str
    content_type: str
    length: int | None
    """Bytes announced by the server."""
    _response: http.client.HTTPResponse = field(repr=False)
    _encoding: str = ""
    truncated: bool = False
    """More arrived than was kept."""

    def body(self) -> bytes:
        """Read the body, unpacked, up to the limit."""
        unpack = _Unpacker(self._encoding)
        kept, received = bytearray(), 0
        while len(kept) < MOST_BYTES and received < MOST_BYTES:
            block = self._response.read1(_BLOCK)
            if not block:
                self._complete(unpack)
                return bytes(kept)
            received += len(block)
            kept += unpack.feed(block, MOST_BYTES - len(kept))
        self.truncated = True
        return bytes(kept)

    def _complete(self, unpack: _Unpacker) -> None:
        """Raise unless everything announced has arrived; a broken connection looks like one that ended."""
        import http.client

        if self._response.length or not unpack.complete:
            raise http.client.HTTPException("it ended early")


class _Unpacker:
    """Unpacks gzip, never more than asked for: a small body may unpack to gigabytes."""

    def __init__(self, encoding: str) -> None:
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            name = one_line(encoding, 40)
            raise ToolError(f"The answer is packed as {name!r}, which was not asked for.", "Try another page.")
        self._gzip = zlib.decompressobj(wbits=31) if encoding.endswith("gzip") else None
        self._fed = False

    @property
    def complete(self) -> bool:
        """Whether the data fed so far is complete."""
        return self._gzip is None or self._gzip.eof or not self._fed

    def feed(self, block: bytes, most: int) -> bytes:
        """Return the unpacked block, at most ``most`` bytes; the rest is lost."""
        self._fed = True
        if self._gzip is None:
            return block[:most]
        return b"" if self._gzip.eof else self._gzip.decompress(block, most)


@contextlib.contextmanager
def get(target: Target, addresses: Sequence[Address], cancel: Cancel, deadline: float) -> Iterator[WebResponse]:
    """Request a target at one of these addresses; yield the answer while its body can be read.

    Raise ToolError if there is no answer, when the deadline (by the monotonic clock) has passed, and on a Cancel.
    """
    import http.client

    with contextlib.ExitStack() as stack:
        late = threading.Event()
        try:
            sock = stack.enter_context(contextlib.closing(_connected(target, addresses, cancel, deadline)))
            stack.enter_context(_ended_from_outside(sock, cancel, deadline, late))
            if target.scheme == "https":
                sock = stack.enter_context(
                    contextlib.closing(_trusted().wrap_socket(sock, server_hostname=target.host))
                )
            connection = stack.enter_context(contextlib.closing(http.client.HTTPConnection(target.host, target.port)))
            connection.sock = sock
            response = stack.enter_context(contextlib.closing(_asked(target, connection)))
            yield _answer(response)
            if late.is_set() or cancel.is_set():  # an answer without a length ends with the connection
                raise TimeoutError
        except (OSError, http.client.HTTPException, zlib.error) as error:
            raise _failure(target, error, cancel, late) from error


def _asked(target: Target, connection: http.client.HTTPConnection) -> http.client.HTTPResponse:
    connection.putrequest("GET", target.path, skip_host=True, skip_accept_encoding=True)
    for name, value in {"Host": target.authority, **_HEADERS}.items():
        connection.putheader(name, value)
    connection.endheaders()
    return connection.getresponse()


def _answer(response: http.client.HTTPResponse) -> WebResponse:
    return WebResponse(
        status=response.status,
        reason=one_line(response.reason, 60),
        location=response.headers.get("Location", "").encode("latin-1", "replace").decode("utf-8", "replace"),
        content_type=response.headers.get("Content-Type", ""),
        length=response.length,
        _response=response,
        _encoding=response.headers.get("Content-Encoding", "").strip().lower(),
    )


def _connected(target: Target, addresses: Sequence[Address], cancel: Cancel, deadline: float) -> socket.socket:
    """Return a connection to the first address that accepts one."""
    error: OSError = OSError("it has no address")
    for family, address in addresses[:_ADDRESSES]:
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            _connect(sock, address, cancel, min(deadline, time.monotonic() + _CONNECT_SECONDS))
        except OSError as refused:
            sock.close()
            if time.monotonic() > deadline:
                raise too_late(target) from refused
            error = refused
        except BaseException:
            sock.close()
            raise
        else:
            sock.settimeout(max(deadline - time.monotonic(), _TICK))
            return sock
    raise ToolError(
        f"{target.authority} cannot be reached: {error.strerror or error}.", "Check the address, or try later."
    )


def _connect(sock: socket.socket, address: Any, cancel: Cancel, deadline: float) -> None:
    """Connect, checking the Cancel meanwhile."""
    sock.setblocking(False)
    code = sock.connect_ex(address)
    poll = select.poll()
    poll.register(sock, select.POLLOUT)
    while code in (errno.EINPROGRESS, errno.EWOULDBLOCK):
        if cancel.is_set():
            raise ToolError("Interrupted.")
        if time.monotonic() > deadline:
            raise TimeoutError(errno.ETIMEDOUT, "no answer in time")
        if poll.poll(_TICK * 1000):
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        raise OSError(code, os.strerror(code))


@contextlib.contextmanager
def _ended_from_outside(sock: socket.socket, cancel: Cancel, deadline: float, late: threading.Event) -> Iterator[None]:
    """Let a Cancel and the deadline end the connection, whatever blocks on it: a server may send a byte a second."""
    # TLS detaches the socket from its object, so keep a second one for the same connection.
    with contextlib.closing(sock.dup()) as twin:

        def end() -> None:
            with contextlib.suppress(OSError):
                twin.shutdown(socket.SHUT_RDWR)

        def end_late() -> None:
            late.set()
            end()

        timer = threading.Timer(max(deadline - time.monotonic(), 0), end_late)
        timer.daemon = True
        timer.start()
        take_back = cancel.on_set(end)
        try:
            yield
        finally:
            timer.cancel()
            take_back()
            timer.join()


@functools.cache
def _trusted() -> ssl.SSLContext:
    import ssl

    return ssl.create_default_context()


def _failure(target: Target, error: Exception, cancel: Cancel, late: threading.Event) -> ToolError:
    import ssl

    if cancel.is_set():
        return ToolError("Interrupted.")
    if late.is_set() or isinstance(error, TimeoutError):
        return too_late(target)
    if isinstance(error, ssl.SSLCertVerificationError):
        return ToolError(
            f"The certificate of {target.authority} is not valid: {error.verify_message}.", "Do not go on."
        )
    said = one_line(str(error), 200).rstrip(".") or type(error).__name__
    return ToolError(f"{target.authority} gave no complete answer: {said}.", "Try again, or another page.")
