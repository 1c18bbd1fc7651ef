"""The two ways to a server, as streams of messages for the SDK's client session."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agentmesh.domain import jsontext
from agentmesh.domain.text import one_line
from agentmesh.tools.mcp.service import Service, TooLong

if TYPE_CHECKING:
    import httpx2
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage
    from pydantic import ValidationError

    Incoming = MemoryObjectSendStream[SessionMessage | Exception]
    Outgoing = MemoryObjectReceiveStream[SessionMessage]


UNREAD: Final = "agentmesh could not read this answer"
"""The data of an error that stands for an answer of the server, and is not the server's."""
_PARTS: Final = frozenset({"jsonrpc", "id", "result", "error"})
"""All that an answer has. Servers also print log records, some of them JSON with an ``id`` of their own."""
_CUT: Final = re.compile(
    r'\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?'
    r'(?:"id"\s*:\s*(\d{1,18})\s*,\s*"(?:result|error)"\s*:'
    r'|"(?:result|error)"\s*:.*"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$)',
    re.DOTALL,
)
"""An answer that is no JSON, or nests too deeply: its number comes first or last, as servers write it."""
_LOG: Final = "notifications/message"
"""The method of a server's words for a log."""
_NOT_FOUND: Final = 404
_GOODBYE = 2.0
"""Time limit, in seconds, for ending a session over HTTP."""


@dataclass(slots=True)
class Exchange:
    """What happened to the last request of a task over HTTP; the SDK does not report it."""

    status: int = 0
    """The status of the answer; 0 while there is none."""
    is_unsent: bool = False
    """Whether no connection was made for it."""
    is_of_forgotten_session: bool = False
    """Whether the server does not know the session that it named: the protocol has the client begin another one."""


_EXCHANGE: Final[ContextVar[Exchange]] = ContextVar("exchange")
"""The SDK runs each request in the context of the task that makes it.

So it does with our replies to what the server asks in its answer; these are not recorded.
"""


def exchange() -> Exchange:
    """Return what happened to the last request of this task over HTTP."""
    return _EXCHANGE.get(Exchange())


def watch_exchanges() -> None:
    """Watch the requests of this task over HTTP, and of it alone."""
    _EXCHANGE.set(Exchange())


class Pipes:
    """A way to a process of our own."""

    def __init__(self, service: Service) -> None:
        self._service = service

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[TransportStreams]:
        """Exchange messages with the process; on leaving, it is always gone."""
        import anyio

        incoming, read = anyio.create_memory_object_stream[Any](0)
        write, outgoing = anyio.create_memory_object_stream[Any](0)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._hear, incoming)
                tasks.start_soon(self._speak, outgoing, incoming)
                tasks.start_soon(self._service.listen)
                tasks.start_soon(self._service.attend)
                try:
                    yield read, write
                finally:
                    with anyio.CancelScope(shield=True):
                        read.close()
                        write.close()
                        await self._service.stop()
                    tasks.cancel_scope.cancel()
        finally:
            self._service.close()

    async def lost(self) -> None:
        """Wait until it sends no more messages."""
        await self._service.silent.wait()

    def ending(self) -> str:
        """Return why it cannot be reached any more; empty while it can."""
        return self._service.ending() if self._service.gone.is_set() else ""

    def last_words(self) -> str:
        """Return the end of its output that was not a message."""
        return self._service.last_words()

    async def _hear(self, incoming: Incoming) -> None:
        import anyio
        from mcp.shared.message import SessionMessage

        async with incoming:
            try:
                async for line in self._service.lines():
                    if (message := _message(line)) is not None:
                        if getattr(message, "method", "") == _LOG:
                            continue  # nobody reads them, and a flood of them would hold up the answer behind it
                        await incoming.send(SessionMessage(message))
                    elif line.strip():
                        self._service.heard_rubbish(line)
            except TooLong as error:
                self._service.give_up(str(error))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return  # nobody listens any more
            finally:
                self._service.silent.set()

    async def _speak(self, outgoing: Outgoing, incoming: Incoming) -> None:
        import anyio

        async with outgoing:
            try:
                async for message in outgoing:
                    await self._service.write(
                        message.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
                    )
            except (OSError, anyio.ClosedResourceError):
                await incoming.aclose()  # it reads no more: nobody must wait for an answer
                self._service.silent.set()


def _message(line: bytes) -> Any:
    """Return a message; None for anything else. Bytes that are no UTF-8, and halves of characters, become U+FFFD.

    Servers do send them, and without this the call that was answered would wait until its time is up.
    """
    from mcp_types import jsonrpc_message_adapter

    text = jsontext.whole(line.decode("utf-8-sig", "replace"))
    try:
        return jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        return _unread(text)


def _unread(text: str) -> Any:
    """Return an error for the call that this text would answer if it could be read; None if it answers none.

    Without it the call would wait until its time is up. Servers without a library leave out parts of a message.
    """
    from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError

    try:
        found = jsontext.parse(text)
    except ValueError as error:
        call, words = _CUT.match(text), str(error)
        number = int(call[1] or call[2]) if call else None
    else:
        if not _is_answer(found):
            return None
        number, words = found.get("id"), _mistake(found)
    if type(number) is not int:  # every call of ours has a number
        return None
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=PARSE_ERROR, message=words, data=UNREAD))


def _is_answer(found: Any) -> bool:
    return isinstance(found, dict) and found.keys() <= _PARTS and len(found) > 1


def _mistake(answer: Mapping[str, Any]) -> str:
    """Return where an answer has its first mistake, and which."""
    from mcp_types import JSONRPCError, JSONRPCResponse
    from pydantic import ValidationError

    if "result" not in answer and "error" not in answer:
        return "it has neither result nor error"
    try:
        (JSONRPCResponse if "result" in answer else JSONRPCError).model_validate(answer, by_name=False)
    except ValidationError as error:
        return first_mistake(error)
    return "it is no JSON-RPC"


def first_mistake(error: ValidationError) -> str:
    """Return where in a message the first mistake is, and which."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(step) for step in first["loc"])
    return one_line(f"{where}: {first['msg']}", 200)


class Web:
    """A way over HTTP."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        self._headers = headers

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[TransportStreams]:
        """Exchange messages by streamable HTTP."""
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        async def watch(event: str, _details: Mapping[str, Any]) -> None:
            if event in ("connection.connect_tcp.failed", "connection.start_tls.failed"):
                exchange().is_unsent = True

        async def remember(response: httpx2.Response) -> None:
            if await _is_request(response.request):
                had_session = "mcp-session-id" in response.request.headers
                exchange().status = response.status_code
                exchange().is_of_forgotten_session = response.status_code == _NOT_FOUND and had_session

        async def prepare(request: httpx2.Request) -> None:
            if await _is_request(request):
                request.extensions["trace"] = watch
            if request.method == "DELETE":  # ends the session: do not wait long
                request.extensions["timeout"] = httpx2.Timeout(_GOODBYE).as_dict()

        # Only connecting has a time limit here: the call limits the time for an answer.
        patience = httpx2.Timeout(None, connect=30.0)
        hooks: dict[str, list[Any]] = {"request": [prepare], "response": [remember]}
        async with (
            httpx2.AsyncClient(headers=dict(self._headers), timeout=patience, event_hooks=hooks) as client,
            streamable_http_client(self._url, http_client=client) as streams,
        ):
            yield streams

    async def lost(self) -> None:
        """Wait for ever: only a call finds out that a server is gone."""
        await asyncio.Event().wait()

    def ending(self) -> str:
        """Return how it refused the last request of this task; empty if it did not."""
        status = exchange().status
        if status < 400:
            return ""
        advice = ": its configuration needs headers that it accepts" if status in (401, 403) else ""
        return f"answered HTTP {status}{advice}"

    def last_words(self) -> str:
        """Return an empty string: all its output is messages."""
        return ""


async def _is_request(sent: httpx2.Request) -> bool:
    """Return whether this carries a JSON-RPC request of ours: no reply to the server, no notification, no GET."""
    return sent.method == "POST" and json.loads(await sent.aread()).keys() >= {"id", "method"}


Way = Pipes | Web
