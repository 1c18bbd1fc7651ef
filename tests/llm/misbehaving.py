"""A model server over real sockets that misbehaves on request: one answer per call, the last one again and again."""

from __future__ import annotations

import json
import queue
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[["Exchange"], None]
PATIENCE = 30.0
"""Seconds that a test waits for what must come about."""


@dataclass(frozen=True)
class Seen:
    """One request as it arrived."""

    path: str
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes
    client: tuple[str, int]
    """Address of the client's socket: the same for two requests on one connection."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Server:
    """What tests see of the server."""

    def __init__(self, answers: Iterable[Answer]) -> None:
        self.url = ""
        self.seen: list[Seen] = []
        self.hanging: queue.Queue[str] = queue.Queue()
        """One entry for each answer that hangs now."""
        self.models: list[str | dict[str, Any]] = []
        """What /models lists, names or whole entries; empty: 404."""
        self.list_answer: Answer | None = None
        """What /models answers instead, if anything."""
        self.documents: dict[str, Answer] = {}
        """What it answers to a GET of these paths; to others it lists its models."""
        self.released = threading.Event()
        self._answers = list(answers)
        self._lock = threading.Lock()

    @property
    def chats(self) -> list[Seen]:
        return [seen for seen in self.seen if seen.path.endswith("/chat/completions")]

    def next_answer(self) -> Answer:
        with self._lock:
            return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


class Exchange(BaseHTTPRequestHandler):
    """One connection; answers write to it."""

    protocol_version = "HTTP/1.1"
    mesh: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.mesh.seen.append(
            Seen(self.path, {name.lower(): value for name, value in self.headers.items()}, body, self.client_address)
        )
        try:
            self.mesh.next_answer()(self)
        except OSError:
            self.close_connection = True  # the client has gone: often what the test is about

    def do_GET(self) -> None:
        self.mesh.seen.append(
            Seen(self.path, {name.lower(): value for name, value in self.headers.items()}, b"", self.client_address)
        )
        if self.path in self.mesh.documents:
            self._give(self.mesh.documents[self.path])
            return
        if self.mesh.list_answer:
            self.mesh.list_answer(self)
            return
        listed = {"data": [{"id": each} if isinstance(each, str) else each for each in self.mesh.models]}
        plain(listed)(self) if self.mesh.models else plain({"error": "no list"}, status=404)(self)

    def _give(self, answer: Answer) -> None:
        try:
            answer(self)
        except OSError:
            self.close_connection = True

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def begin(self) -> None:
        """Send the head of a chunked answer."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def piece(self, data: bytes) -> None:
        """Send one chunk of the body."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def end(self) -> None:
        """End the body as it should be."""
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def hang(self) -> None:
        """Tell the test, then do nothing until it is over."""
        self.mesh.hanging.put("hanging")
        self.mesh.released.wait()
        self.close_connection = True


class _Http(ThreadingHTTPServer):
    request_queue_size = 128  # of 5, the default, a crowd that asks at once is turned away


@contextmanager
def misbehaving(*answers: Answer) -> Iterator[Server]:
    """Run a server that gives these answers."""
    mesh = Server(answers)
    handler = type("Bound", (Exchange,), {"mesh": mesh})
    with _Http(("127.0.0.1", 0), handler) as http:
        http.daemon_threads = True
        http.block_on_close = False
        mesh.url = f"http://127.0.0.1:{http.server_port}/v1"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield mesh
        finally:
            mesh.released.set()
            http.shutdown()
            thread.join(PATIENCE)


def data(value: Any) -> bytes:
    """Return an event; bytes stand as they are, text is not encoded as JSON."""
    if isinstance(value, bytes):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return b"data: " + text.encode() + b"\n\n"


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """Return a chunk of an answer."""
    return {"model": "m-1", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def text(*words: str, finish: str | None = "stop") -> list[dict[str, Any]]:
    """Return the chunks of an answer in words."""
    return [*(delta(content=word) for word in words), *([delta(finish)] if finish else [])]


USAGE = {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 3}}


def stream(*events: Any, done: bool = True) -> Answer:
    """Answer with these events."""

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        for event in events:
            exchange.piece(data(event))
        if done:
            exchange.piece(data("[DONE]"))
        exchange.end()

    return answer


def good(*words: str) -> Answer:
    """Answer as a good server does."""
    return stream(delta(role="assistant", content=""), *text(*(words or ("Hello",))), USAGE)


def cut(*events: Any) -> Answer:
    """Break the connection after these events, without the end of the body."""

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        for event in events:
            exchange.piece(data(event))
        exchange.close_connection = True

    return answer


def hanging(*events: Any, head: bool = True) -> Answer:
    """Stop after these events, or before any header."""

    def answer(exchange: Exchange) -> None:
        if head:
            exchange.begin()
        for event in events:
            exchange.piece(data(event))
        exchange.hang()

    return answer


def dripping(*events: Any, every: float) -> Answer:
    """Send an event every so many seconds."""

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        for event in events:
            exchange.piece(data(event))
            exchange.mesh.released.wait(every)
        exchange.end()

    return answer


def plain(body: Any, status: int = 200, content_type: str = "application/json", **headers: str) -> Answer:
    """Answer without a stream."""
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()

    def answer(exchange: Exchange) -> None:
        exchange.send_response(status)
        exchange.send_header("content-type", content_type)
        exchange.send_header("content-length", str(len(raw)))
        for name, value in headers.items():
            exchange.send_header(name.replace("_", "-"), value)
        exchange.end_headers()
        exchange.wfile.write(raw)
        exchange.wfile.flush()

    return answer


def error(status: int, message: str, headers: Mapping[str, str] | None = None, **fields: Any) -> Answer:
    """Answer with an error as OpenAI writes it."""
    return plain({"error": {"message": message, **fields}}, status, **(headers or {}))


@contextmanager
def deaf_port() -> Iterator[int]:
    """Yield a port whose connections never come about: its queue is full and nobody accepts."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        address = listener.getsockname()
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(address)
        try:
            yield address[1]
        finally:
            for filler in fillers:
                filler.close()
