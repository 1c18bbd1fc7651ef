"""An MCP server over HTTP, on loopback: it wants a token, and forgets its sessions when it is told to."""

from __future__ import annotations

import json
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
        self.calls = 0
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
        if asked["method"] == "initialize":
            session = f"s{len(self.server.sessions)}"
            self.server.sessions.add(session)
            version = asked["params"]["protocolVersion"]
            about = {"serverInfo": {"name": "web", "version": "1"}, "capabilities": {"tools": {}}}
            return self._say(200, asked, {"protocolVersion": version, **about}, session)
        if self.headers.get("Mcp-Session-Id") not in self.server.sessions:
            return self._say(404)
        if "id" not in asked:
            return self._say(202)
        if asked["method"] == "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("who", "leak")]
            return self._say(200, asked, {"tools": tools})
        self.server.calls += 1
        words = f"the token is {TOKEN}" if asked["params"]["name"] == "leak" else "it is me"
        return self._say(200, asked, {"content": [{"type": "text", "text": words}]})

    def _say(self, status: int, asked: Any = None, result: Any = None, session: str = "") -> None:
        body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode() if result else b""
        self.send_response(status)
        if session:
            self.send_header("Mcp-Session-Id", session)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
