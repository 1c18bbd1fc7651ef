"""One client connection: requests are read by http.server, answers are written as scripted, and pauses end at once."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, Protocol, cast

MAX_BODY = 64 * 1024 * 1024


class PeerGone(Exception):
    """The client has closed the connection, or the server is being stopped."""


class Answers(Protocol):
    """Answers the requests of a connection; each method returns whether the connection may be used again."""

    def answer(self, connection: SimulatorConnection, /) -> bool:
        """Answer a request that was read."""

    def refuse(self, connection: SimulatorConnection, status: int, message: str, /) -> bool:
        """Answer bytes that are not a request, or a request that is not allowed."""


class SimulatorConnection(BaseHTTPRequestHandler):
    """A client's socket, used by one thread; another may shut it down to stop whatever goes on."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, sock: socket.socket, peer: Any, answers: Answers) -> None:
        """Serve the client until it leaves; raise PeerGone if it leaves in the middle."""
        self._answers = answers
        self.body = b""
        """The body of the request that was read last."""
        super().__init__(sock, peer, cast("Any", None))

    def do_GET(self) -> None:
        """Read the body, if any, and answer."""
        if not self._read_body() or not self._answers.answer(self):
            self.close_connection = True

    do_POST = do_GET  # noqa: N815  the name that http.server looks for

    def _read_body(self) -> bool:
        """Read the body; return False after a refusal."""
        if "transfer-encoding" in self.headers:
            return self._refuse(411, "a Content-Length is needed")
        text = self.headers.get("content-length", "0")
        if not text.isascii() or not text.isdigit():
            return self._refuse(400, "the Content-Length is not a number")
        if int(text) > MAX_BODY:
            return self._refuse(413, "the body is larger than 64 MiB")
        self.body = self.rfile.read(int(text))
        if len(self.body) < int(text):
            raise PeerGone
        return True

    def _refuse(self, status: int, message: str) -> bool:
        self.close_connection = True
        self._answers.refuse(self, status, message)
        return False

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Refuse bytes that http.server cannot read as a request."""
        self._refuse(code, message or "the request is not valid")

    def log_message(self, *_: Any) -> None:
        """Write nothing: requests are recorded."""

    def send(self, data: bytes) -> None:
        """Send all of it."""
        self.connection.sendall(data)

    def pause(self, seconds: float) -> None:
        """Sleep; raise PeerGone as soon as the client leaves or the server stops."""
        if seconds <= 0:
            return
        until = time.monotonic() + seconds
        self.connection.settimeout(seconds)
        try:
            if not self.connection.recv(1, socket.MSG_PEEK):
                raise PeerGone
        except TimeoutError:
            return
        finally:
            self.connection.settimeout(None)
        # Early bytes of a next request make the socket readable for good: only the clock is left.
        time.sleep(max(0.0, until - time.monotonic()))

    def hang(self) -> None:
        """Say nothing more until the client leaves or the server stops."""
        while self.connection.recv(65536):
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
