"""The server: listens on loopback only, asks a script for each reply, and sends it in the shape of a profile.

One thread per connection, since a scripted model mostly pauses; a reply without pauses leaves in one write.
"""

from __future__ import annotations

import hmac
import logging
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from agentmesh.domain import jsontext
from agentmesh.llm.simulator.connection import PeerGone, SimulatorConnection
from agentmesh.llm.simulator.profiles import Profile, find_profile
from agentmesh.llm.simulator.reply import NoReply, Responder
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.llm.simulator.sending import send_json, send_reply
from agentmesh.llm.simulator.wire import refusal

logger = logging.getLogger(__name__)

_STOP_DEADLINE = 5.0


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One chat request as it arrived."""

    body: dict[str, Any]
    """Parsed; empty if it was not a JSON object."""
    raw: bytes = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    """Names in lower case."""


class Simulator:
    """A scripted model server. Use it as a context manager, or start and stop it."""

    def __init__(
        self,
        responder: Responder,
        *,
        profile: str | Profile = "openai",
        token: str | None = None,
        models: Sequence[str] | None = None,
        port: int = 0,
        record: bool = True,
    ) -> None:
        """``token``: the only accepted API key. ``models``: the only ones served; None serves any, as "demo"."""
        self.profile = find_profile(profile) if isinstance(profile, str) else profile
        self._responder = responder
        self._token = token
        self._models = models
        self._port = port
        self._record = record
        self._listening: socket.socket | None = None
        self._acceptor: threading.Thread | None = None
        self._state = threading.Condition()
        self._requests: list[RecordedRequest] = []
        self._count = 0
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._stopping = False

    @property
    def base_url(self) -> str:
        """Base URL for clients, with ``/v1``; known once started."""
        if self._listening is None:
            raise RuntimeError("the simulator is not started")
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}/v1"

    @property
    def requests(self) -> list[RecordedRequest]:
        """The chat requests so far, oldest first (a copy; empty unless recording)."""
        with self._state:
            return list(self._requests)

    @property
    def count(self) -> int:
        """How many chat requests have arrived."""
        with self._state:
            return self._count

    def wait_for_requests(self, n: int, timeout: float = 10.0) -> list[RecordedRequest]:
        """Wait until ``n`` chat requests have arrived (seconds); raise TimeoutError otherwise."""
        with self._state:
            if not self._state.wait_for(lambda: self._count >= n, timeout):
                raise TimeoutError(f"{self._count} of {n} requests arrived within {timeout} s")
            return list(self._requests)

    def start(self) -> str:
        """Listen and serve in the background; return the base URL. Raise OSError when the port is taken."""
        self._listening = socket.create_server(("127.0.0.1", self._port), backlog=1024)
        self._stopping = False
        self._acceptor = threading.Thread(
            target=self._accept, args=(self._listening,), name="simulator-accept", daemon=True
        )
        self._acceptor.start()
        return self.base_url

    def stop(self) -> None:
        """Cut every connection and end all threads; safe to call twice."""
        # Critical section: after it no connection is added.
        with self._state:
            if self._stopping or self._listening is None or self._acceptor is None:
                return
            self._stopping = True
        # Closing a socket does not wake the thread that accepts on it: a last connection does.
        socket.create_connection(self._listening.getsockname()).close()
        self._acceptor.join()
        self._listening.close()
        self._listening = None
        with self._state:
            open_connections = dict(self._connections)
        for sock in open_connections:
            _shut_down(sock)
        until = time.monotonic() + _STOP_DEADLINE
        for thread in open_connections.values():
            thread.join(max(0.0, until - time.monotonic()))
            if thread.is_alive():
                logger.warning("simulator: thread %s did not stop", thread.name)

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop."""
        self.stop()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            sock, peer = listening.accept()
            thread = threading.Thread(target=self._serve, args=(sock, peer), name=f"simulator-{peer[1]}", daemon=True)
            # Critical section: a connection is either known to stop() or refused.
            with self._state:
                if self._stopping:
                    sock.close()
                    return
                self._connections[sock] = thread
            thread.start()

    def _serve(self, sock: socket.socket, peer: Any) -> None:
        try:
            SimulatorConnection(sock, peer, self)
        except (PeerGone, ConnectionError):
            logger.debug("simulator: the client left")
        except Exception:
            logger.exception("simulator: a request could not be answered")
        finally:
            with self._state:
                self._connections.pop(sock, None)
            sock.close()

    def answer(self, connection: SimulatorConnection) -> bool:
        """Answer one request; return whether the connection may be used again."""
        path = connection.path.partition("?")[0]
        route = (connection.command, path)
        if route == ("GET", "/health"):
            return send_json(connection, 200, {"status": "ok"})
        if self._token is not None and not self._authorized(connection):
            return self.refuse(connection, 401, self.profile.unauthorized)
        if route == ("GET", "/v1/models"):
            return send_json(connection, 200, {"object": "list", "data": self._model_list()})
        if route == ("POST", "/v1/chat/completions"):
            return self._chat(connection)
        return self.refuse(connection, 404, f"Invalid URL ({connection.command} {path})")

    def _chat(self, connection: SimulatorConnection) -> bool:
        body = _json_object(connection.body)
        # Critical section: record, and wake the waiting threads.
        with self._state:
            self._count += 1
            if self._record:
                headers = {name.lower(): value for name, value in connection.headers.items()}
                self._requests.append(RecordedRequest(body or {}, connection.body, headers))
            self._state.notify_all()
        if body is None:
            return self.refuse(connection, 400, "We could not parse the JSON body of your request.")
        view = ChatRequestView(body)
        if self._models is not None and view.model not in self._models:
            message = self.profile.unknown_model.format(model=view.model)
            return self.refuse(connection, self.profile.unknown_model_status, message)
        if refused := refusal(self.profile, view):
            return send_json(connection, *refused)
        try:
            reply = self._responder(view)
        except NoReply as error:
            return self.refuse(connection, 400, str(error))
        return send_reply(connection, self.profile, reply, view)

    def refuse(self, connection: SimulatorConnection, status: int, message: str) -> bool:
        """Refuse a request in the words of the profile's server."""
        error = self.profile.error(status, message, "")
        return send_json(connection, status, error, keep_alive=not connection.close_connection)

    def _authorized(self, connection: SimulatorConnection) -> bool:
        given = connection.headers.get("authorization", "").encode("latin-1", "replace")
        return hmac.compare_digest(given, f"Bearer {self._token}".encode("latin-1", "replace"))

    def _model_list(self) -> list[dict[str, Any]]:
        names = ("demo",) if self._models is None else self._models
        return [{"id": name, "object": "model", "created": 0, "owned_by": "agentmesh"} for name in names]


def _json_object(raw: bytes) -> dict[str, Any] | None:
    try:
        value = jsontext.parse(raw)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _shut_down(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        logger.debug("simulator: the connection was closed already")
