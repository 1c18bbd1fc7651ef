"""The two ways to a server, as streams of messages for the SDK's client session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from agentmesh.tools.mcp.service import Service, TooLong

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

    Incoming = MemoryObjectSendStream[SessionMessage | Exception]
    Outgoing = MemoryObjectReceiveStream[SessionMessage]


_GOODBYE = 2.0
"""Seconds for the end of a session over HTTP."""


class Pipes:
    """A way to a process of our own."""

    def __init__(self, service: Service) -> None:
        self._service = service

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[TransportStreams]:
        """Speak with it; whatever happens, it is gone afterwards."""
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
        """Wait until it says no more."""
        await self._service.silent.wait()

    def ending(self) -> str:
        """Return why nobody can speak with it any more; empty while somebody can."""
        return self._service.ending() if self._service.gone.is_set() else ""

    def last_words(self) -> str:
        """Return what it said that is no message."""
        return self._service.last_words()

    async def _hear(self, incoming: Incoming) -> None:
        import anyio
        from mcp.shared.message import SessionMessage

        async with incoming:
            try:
                async for line in self._service.lines():
                    if (message := _message(line)) is not None:
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
                await incoming.aclose()  # it reads no more: nobody shall wait for an answer
                self._service.silent.set()


def _message(line: bytes) -> Any:
    from mcp_types import jsonrpc_message_adapter

    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return None


class Web:
    """A way over HTTP; it remembers how the server last answered, which the SDK does not tell."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        self._headers = headers
        self._status = 0

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[TransportStreams]:
        """Speak streamable HTTP."""
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        async def remember(response: httpx2.Response) -> None:
            if response.request.method == "POST":  # that it has no stream of its own, for example, is no failure
                self._status = response.status_code

        async def hurry(request: httpx2.Request) -> None:
            if request.method == "DELETE":  # a goodbye, for which nobody shall wait
                request.extensions["timeout"] = httpx2.Timeout(_GOODBYE).as_dict()

        # Only a connection has a time of its own: how long an answer takes is the call's matter.
        patience = httpx2.Timeout(None, connect=30.0)
        hooks: dict[str, list[Any]] = {"request": [hurry], "response": [remember]}
        async with (
            httpx2.AsyncClient(headers=dict(self._headers), timeout=patience, event_hooks=hooks) as client,
            streamable_http_client(self._url, http_client=client) as streams,
        ):
            yield streams

    async def lost(self) -> None:
        """Wait for ever: only a call finds out that a server is gone."""
        await asyncio.Event().wait()

    def ending(self) -> str:
        """Return how it refuses; empty where it does not."""
        if self._status < 400:
            return ""
        advice = ": its configuration needs headers that it accepts" if self._status in (401, 403) else ""
        return f"answered HTTP {self._status}{advice}"

    def last_words(self) -> str:
        """Return nothing: all that it says are messages."""
        return ""


Way = Pipes | Web
