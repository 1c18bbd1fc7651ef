"""One client connection: reads HTTP/1.1 requests, writes answers, and notices during pauses that the client left.

It does less than http.server, whose header parsing alone costs more than everything here: benchmarks run against it.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

MAX_HEADERS = 64 * 1024
MAX_BODY = 64 * 1024 * 1024


class PeerGone(Exception):
    """The client has closed the connection, or the server is stopping."""


class BadRequest(Exception):
    """The bytes received are not a request that can be answered; the connection is closed after the status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request as received."""

    method: str
    path: str
    headers: Mapping[str, str] = field(repr=False)
    """Names in lower case."""
    body: bytes = field(repr=False)
    keep_alive: bool


class Connection:
    """A client's socket, used by one thread; another thread may shut it down to end whatever is going on."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._buffer = b""
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def read_request(self) -> HttpRequest | None:
        """Read the next request; return None if the client closed the connection after the last one."""
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > MAX_HEADERS:
                raise BadRequest(431, "the headers are larger than 64 KiB")
            if not (data := self._socket.recv(65536)):
                return None
            self._buffer += data
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        self._buffer = self._buffer[end + 4 :]
        parts = first.split(" ")
        if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
            raise BadRequest(400, "the request line is not valid")
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        body = self._read_body(headers)
        close = headers.get("connection", "").lower() == "close" or parts[2] == "HTTP/1.0"
        return HttpRequest(parts[0], parts[1].partition("?")[0], headers, body, not close)

    def _read_body(self, headers: Mapping[str, str]) -> bytes:
        if "transfer-encoding" in headers:
            raise BadRequest(411, "a Content-Length is needed")
        text = headers.get("content-length", "0")
        if not text.isascii() or not text.isdigit():
            raise BadRequest(400, "the Content-Length is not a number")
        length = int(text)
        if length > MAX_BODY:
            raise BadRequest(413, "the body is larger than 64 MiB")
        if headers.get("expect", "").lower() == "100-continue":
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        pieces, have = [self._buffer], len(self._buffer)
        while have < length:
            if not (data := self._socket.recv(min(length - have, 1 << 20))):
                raise PeerGone
            pieces.append(data)
            have += len(data)
        whole = b"".join(pieces)
        self._buffer = whole[length:]
        return whole[:length]

    def send(self, data: bytes) -> None:
        """Send all bytes."""
        self._socket.sendall(data)

    def pause(self, seconds: float) -> None:
        """Sleep; raise PeerGone as soon as the client leaves or the server stops."""
        if seconds <= 0:
            return
        until = time.monotonic() + seconds
        self._socket.settimeout(seconds)
        try:
            if not self._socket.recv(1, socket.MSG_PEEK):
                raise PeerGone
        except TimeoutError:
            return
        finally:
            self._socket.settimeout(None)
        # Early bytes of the next request keep the socket readable: only the clock is left.
        time.sleep(max(0.0, until - time.monotonic()))

    def hang(self) -> None:
        """Send nothing more until the client leaves or the server stops."""
        while self._socket.recv(65536):
            pass
        raise PeerGone


def response_head(status: int, headers: Mapping[str, str]) -> bytes:
    """Return status line and headers."""
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = "Unknown"
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} {reason}\r\nServer: agentmesh-simulator\r\n{lines}\r\n".encode("latin-1", "replace")


def http_chunk(data: bytes) -> bytes:
    """Return the data as one chunk of a chunked body; empty data ends the body."""
    return b"%x\r\n%b\r\n" % (len(data), data)
