"""An MCP server over HTTP, on loopback: it wants a token, and forgets sessions or loses answers when it is told to."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "a-very-secret-token"


class McpWeb(ThreadingHTTPServer):
    """Serves one tool, ``who``, and one that tells the secret, ``leak``."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.sessions: set[str] = set()
        self.attempts = 0
        """How often a tool was called."""
        self.calls = 0
        """How often it carried a call out."""
        self.has_sessions = True
        self.forgotten = b""
        """What it says with the status 404 of a session that it does not know."""
        self.lost: tuple[int, str, bytes] | None = None
        """Status, type and body with which it answers calls that it has carried out."""
        self.refusal = 0
        """Status with which it refuses calls, and carries none out; 0 while it refuses none."""
        self.asks: tuple[int, bytes] | None = None
        """It carries calls out, and pings in its answer: the status for the reply, and the end of the answer."""
        self.was_replied = threading.Event()
        self.cut = False
        """Whether it carries calls out and ends the connection."""
        self.url = f"http://127.0.0.1:{self.server_port}/mcp"
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join(10)


class _Handler(BaseHTTPRequestHandler):
    server: McpWeb

    def log_message(self, *_: Any) -> None:
        return

    def do_GET(self) -> None:
        self._say(405)

    def do_DELETE(self) -> None:
        self._say(200)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._say(401)
        if "method" not in asked:
            return self._take_reply()
        if asked["method"] == "initialize":
            session = f"s{len(self.server.sessions)}" if self.server.has_sessions else ""
            self.server.sessions.add(session)
            version = asked["params"]["protocolVersion"]
            about = {"serverInfo": {"name": "web", "version": "1"}, "capabilities": {"tools": {}}}
            return self._say(200, asked, {"protocolVersion": version, **about}, session)
        if self.headers.get("Mcp-Session-Id", "") not in self.server.sessions:
            return self._send(404, self.server.forgotten.replace(b"ID", b"null"), "application/json")
        if "id" not in asked:
            return self._say(202)
        if asked["method"] == "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("who", "leak")]
            return self._say(200, asked, {"tools": tools})
        return self._answer_call(asked)

    def _answer_call(self, asked: Any) -> None:
        self.server.attempts += 1
        if self.server.refusal:
            return self._say(self.server.refusal)
        self.server.calls += 1
        if self.server.asks is not None:
            return self._ask(asked["id"], self.server.asks[1])
        if self.server.cut:
            self.connection.shutdown(socket.SHUT_RDWR)
            return None
        if self.server.lost is not None:
            status, kind, body = self.server.lost
            return self._send(status, body.replace(b"ID", json.dumps(asked["id"]).encode()), kind)
        words = f"the token is {TOKEN}" if asked["params"]["name"] == "leak" else "it is me"
        return self._say(200, asked, {"content": [{"type": "text", "text": words}]})

    def _ask(self, call: int, end: bytes) -> None:
        """Ping in an answer that is a stream, and end it when the client has seen what its reply got."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(b'data: {"jsonrpc": "2.0", "id": "p1", "method": "ping"}\n\n')
        assert self.server.was_replied.wait(30)
        self.wfile.write(end.replace(b"ID", json.dumps(call).encode()))

    def _take_reply(self) -> None:
        assert self.server.asks is not None
        self._say(self.server.asks[0])
        self.rfile.read(1)  # returns when the client has read the status, and closes the connection
        self.server.was_replied.set()

    def _say(self, status: int, asked: Any = None, result: Any = None, session: str = "") -> None:
        body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode() if result else b""
        self._send(status, body, "application/json", session)

    def _send(self, status: int, body: bytes, kind: str, session: str = "") -> None:
        self.send_response(status)
        if session:
            self.send_header("Mcp-Session-Id", session)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
