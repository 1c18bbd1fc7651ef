"""A web server on loopback whose answers a test writes byte for byte."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping

Reply = bytes | Callable[[socket.socket], None]
"""What follows a request: the whole answer, or who writes it."""


def answer(
    body: bytes | str = b"", kind: str = "text/plain; charset=utf-8", status: str = "200 OK", **headers: str
) -> bytes:
    """Return an answer with its length."""
    body = body.encode() if isinstance(body, str) else body
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    lines = {"Content-Type": kind, "Content-Length": str(len(body)), **given}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value)
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


def moved(location: str, status: str = "302 Found") -> bytes:
    """Return a redirect."""
    return answer(status=status, Location=location)


class WebServer:
    """Answers each request by its path; keeps what it was asked."""

    def __init__(self, replies: Mapping[str, Reply], address: str, context: ssl.SSLContext | None) -> None:
        self._replies = replies
        self._context = context
        self._listener = socket.create_server((address, 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"{'https' if context else 'http'}://{address}:{self.port}"
        self.requests: list[str] = []
        """Heads of the requests, as they came."""
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening; connections that are open go on."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._one, args=[connection], daemon=True).start()

    def _one(self, plain: socket.socket) -> None:
        with contextlib.suppress(OSError), plain, self._secured(plain) as connection:
            head = b""
            while b"\r\n\r\n" not in head:
                block = connection.recv(65536)
                if not block:
                    return
                head += block
            self.requests.append(head.decode())
            path = head.split(b" ")[1].decode()
            reply = self._replies.get(path, answer("no such page", status="404 Not Found"))
            if isinstance(reply, bytes):
                connection.sendall(reply)
            else:
                reply(connection)

    def _secured(self, plain: socket.socket) -> socket.socket:
        return self._context.wrap_socket(plain, server_side=True) if self._context else plain


@contextlib.contextmanager
def serving(
    replies: Mapping[str, Reply], address: str = "127.0.0.1", context: ssl.SSLContext | None = None
) -> Iterator[WebServer]:
    """Lend a server."""
    server = WebServer(replies, address, context)
    try:
        yield server
    finally:
        server.close()
