"""The same server over streamable HTTP: on loopback only, and only for clients with the token."""

from __future__ import annotations

import hmac
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager

import anyio
import uvicorn
from anyio.abc import TaskStatus
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from agentmesh.domain.errors import UsageError
from agentmesh.mcp.member import Member
from agentmesh.mcp.server import SIGNALS, build

_LOOPBACK = "127.0.0.1"
_PATH = "/mcp"
_GRACE = 2
"""Seconds for requests under way when the server is asked to stop."""


def serve_http(member: Member, port: int, token: str, started: Callable[[str], None]) -> None:
    """Serve clients that send the token until a signal asks to stop; ``started`` gets the URL.

    All clients act as the one member. Raise UsageError if the port is occupied.
    """
    app = _Guarded(build(member).streamable_http_app(streamable_http_path=_PATH, host=_LOOPBACK), token)
    config = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=_GRACE)
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((_LOOPBACK, port))
        except OSError as error:
            raise UsageError(
                f"Port {port} on {_LOOPBACK} cannot be used: {error.strerror}.", hint="--http 0 takes a free one."
            ) from error
        listening.listen()
        url = f"http://{_LOOPBACK}:{listening.getsockname()[1]}{_PATH}"
        anyio.run(_serve, _Server(config), listening, lambda: started(url))


class _Server(uvicorn.Server):
    """A server that leaves the signals to its caller: uvicorn raises them again at its end."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def _serve(server: uvicorn.Server, listening: socket.socket, started: Callable[[], None]) -> None:
    async def heed(*, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        with anyio.open_signal_receiver(*SIGNALS) as signals:
            task_status.started()
            async for _ in signals:
                server.should_exit = True

    async with anyio.create_task_group() as tasks:
        await tasks.start(heed)
        started()
        await server.serve(sockets=[listening])
        tasks.cancel_scope.cancel()


class _Guarded:
    """Lets only requests with the token through. A wait ends with its request (``server``), so with its client."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(b"authorization", b"")
        if not hmac.compare_digest(given, self._expected):
            headers = {"WWW-Authenticate": "Bearer"}
            await JSONResponse({"error": "wrong or no token"}, 401, headers)(scope, receive, send)
            return
        until_gone = scope.setdefault("state", {})["until_gone"] = anyio.CancelScope()
        try:
            await self._app(scope, receive, send)
        finally:
            until_gone.cancel()
