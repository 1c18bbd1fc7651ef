"""Serves the terminal UI to a browser, with textual-serve: a process of its own for each page that is open.

A page on loopback is within reach of every other page that the browser shows. So three things guard it. The path has a
secret, the Host header must name loopback (against DNS rebinding), and a web socket must come from our own page.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable

from aiohttp import web
from textual_serve.server import Server

_HOST = "127.0.0.1"
_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; font-src 'self' data:; "
    "img-src 'self' data:; connect-src 'self' ws://{host}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page loads nothing from other hosts; textual-serve's page asks for a font elsewhere."""

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ScreenServer(Server):
    """Listens on loopback as soon as it is made; raise OSError if the port is occupied."""

    def __init__(self, command: str, port: int, token: str) -> None:
        """``command`` is what a page runs; ``token`` is the first part of every path."""
        self._socket = socket.create_server((_HOST, port))
        port = self._socket.getsockname()[1]
        super().__init__(command, host=_HOST, port=port, title="agentmesh")
        self._token = token

    @property
    def address(self) -> str:
        """The URL for a person to open."""
        return f"{self.public_url}/{self._token}/"

    def serve(self, debug: bool = False) -> None:
        """Serve until Ctrl+C or SIGTERM."""
        self.debug = debug
        web.run_app(self._guarded(), sock=self._socket, print=None, access_log=None)

    async def on_startup(self, app: web.Application) -> None:
        """Print nothing: the command has said it all."""

    async def _guarded(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        app.add_subapp(f"/{self._token}/", await self._make_app())
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        hosts = {f"{_HOST}:{self.port}", f"localhost:{self.port}"}
        if request.headers.get("Host") not in hosts:
            raise web.HTTPForbidden(text="This server is for pages on loopback only.")
        origin = request.headers.get("Origin")
        asks_socket = request.headers.get("Upgrade", "").lower() == "websocket"
        if (origin is not None or asks_socket) and origin not in {f"http://{host}" for host in hosts}:
            raise web.HTTPForbidden(text="Another page may not use this server.")
        response = await handler(request)
        if not response.prepared:
            response.headers["Content-Security-Policy"] = _POLICY.format(host=f"{_HOST}:{self.port}")
            response.headers["Referrer-Policy"] = "no-referrer"
            response.headers["Cache-Control"] = "no-store"
            response.headers["X-Content-Type-Options"] = "nosniff"
        return response
