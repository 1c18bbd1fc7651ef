"""All MCP servers of a process: one thread with an event loop runs them, and agents' threads send it calls."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import importlib.util
import logging
import threading
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeVar

from agentmesh.config import mcp
from agentmesh.config.documents import Problem
from agentmesh.config.mcp import Mcp, McpServers, NamedServer
from agentmesh.domain.extras import install_words
from agentmesh.domain.text import one_line
from agentmesh.engine.tool import ToolContext, ToolError
from agentmesh.tools.guarded_run import Spawner
from agentmesh.tools.mcp import answer
from agentmesh.tools.mcp.connection import RunState, ServerConnection
from agentmesh.tools.mcp.listing import Listing
from agentmesh.tools.mcp.reasons import ServerFailed

T = TypeVar("T")

_LATE: Final = 2.0
"""After so many seconds people are told the servers that have not started."""
_ENDING: Final = 10.0
"""Seconds that all servers together have to end."""
_HINT: Final = "Do without it, and say so; the user sees with `agentmesh doctor` what is wrong."
NO_LIBRARY: Final = "the package mcp is not installed: " + install_words("mcp")


@dataclass(frozen=True, slots=True)
class ServerState:
    """The state of a server, for people."""

    name: str
    source: str
    state: RunState
    tools: int
    problems: tuple[str, ...] = ()


class Hub:
    """Starts servers when they are needed, and ends them when it is closed."""

    def __init__(
        self,
        configured: Callable[[Path], McpServers],
        settings: Mcp,
        environ: Mapping[str, str],
        tell: Callable[[str], None] = lambda _words: None,
    ) -> None:
        """``configured`` reads a project's configuration each time, so that withdrawn trust takes effect at once.

        ``tell`` gets the words for people when something takes long.
        """
        self._configured = configured
        self._tell = tell
        self._settings = settings
        self._environ = environ
        self._spawner = Spawner()
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._connections: dict[tuple[str, str, str], ServerConnection] = {}
        """By project, working directory and server: an agent with its own tree has servers that work there."""

    def definitions(self, workdir: Path) -> list[dict[str, Any]]:
        """Return the tools for a new session, by name; a server that does not answer loses only its own tools."""
        servers = self._configured(workdir).servers
        if not servers or not has_library():
            return []
        known = [self._connection(each, workdir, workdir) for each in servers.values()]
        awaited = {each.server.name for each in known}
        listed = self._submit(_all_listed(known, awaited))
        try:
            listings = listed.result(_LATE)
        except concurrent.futures.TimeoutError:
            if late := ", ".join(sorted(awaited.copy())):
                self._tell(f"Waiting for MCP servers to start: {one_line(late, 120)}")
            listings = listed.result()
        found = [tool for each in listings for tool in each.definitions]
        return sorted(found, key=lambda tool: str(tool["function"]["name"]))

    def states(self, workdir: Path) -> list[ServerState]:
        """Return the states of the configured servers; start none."""
        states = []
        for each in self._configured(workdir).servers.values():
            made = self._connections.get((str(workdir), str(workdir), each.key))
            problems = tuple(filter(None, (made.problem, *made.listing.problems))) if made else ()
            state, count = (made.state, len(made.listing.definitions)) if made else (RunState.STOPPED, 0)
            states.append(ServerState(each.name, each.source, state, count, problems))
        return states

    def problems(self, workdir: Path) -> list[Problem]:
        """Return the problems to show people: servers that must not start or did not, and tools that were left out."""
        configured = self._configured(workdir)
        if configured.servers and not has_library():
            names = ", ".join(each.name for each in configured.servers.values())
            sources = ", ".join(dict.fromkeys(each.source for each in configured.servers.values()))
            words = f"its MCP servers ({one_line(names, 120)}) are not used: {NO_LIBRARY}"
            missing = Problem(sources, words, broken=True)
            return [*configured.problems, missing]
        found = [
            Problem(each.source, f"the MCP server {each.name} {problem}", broken=each.state is RunState.FAILED)
            for each in self.states(workdir)
            for problem in each.problems
        ]
        return [*configured.problems, *found]

    def call(self, tool: str, arguments: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
        """Call a tool by the name that agents use; return its result, or raise ToolError."""
        server = self._server(tool, context.project)
        connection = self._connection(server, context.project, context.workdir)
        seconds = server.settings.timeout or self._settings.call_timeout
        context.progress(one_line(f"{server.name}: {tool.rpartition('__')[2]}"))
        waiting = self._submit(connection.call(tool, arguments, seconds))
        take_back = context.cancel.on_set(lambda: _cancel(waiting))
        try:
            answered = waiting.result()
        except concurrent.futures.CancelledError:
            note = "The server was told to stop; the call may have taken effect."
            return {"output": "", "interrupted": True, "note": note}
        except ServerFailed as failed:
            raise ToolError(f"the MCP server {server.name} {failed}.", _HINT) from failed
        finally:
            take_back()
        return answer.result(server.name, answered, connection.secrets, context)

    def close(self) -> None:
        """End all servers; idempotent."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
            connections, self._connections = list(self._connections.values()), {}
        if loop is None or thread is None:
            return
        ending = asyncio.run_coroutine_threadsafe(_all_closed(connections), loop)
        with contextlib.suppress(concurrent.futures.TimeoutError):
            ending.result(_ENDING)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(_ENDING)
        self._spawner.close()

    def _server(self, tool: str, project: Path) -> NamedServer:
        """Return the server of a tool; raise ToolError if it must not be used."""
        configured = self._configured(project)
        if not has_library():
            raise ToolError(f"{tool} cannot be called: {NO_LIBRARY}.", _HINT)
        found = [server for server, _ in mcp.named(tool, configured.servers)]
        if found:
            return found[0]
        names = ", ".join(each.name for each in configured.servers.values()) or "none"
        raise ToolError(
            f"the MCP server of {tool} is not configured any more, or not trusted; there is: {names}.", _HINT
        )

    def _connection(self, server: NamedServer, project: Path, workdir: Path) -> ServerConnection:
        key = (str(project), str(workdir), server.key)
        # Critical section: one connection for each server of a directory.
        with self._lock:
            if key not in self._connections:
                made = ServerConnection(server, (project, workdir), self._spawner, self._settings, self._environ)
                self._connections[key] = made
            return self._connections[key]

    def _submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        # Critical section: start the thread only once.
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_run, args=(self._loop,), name="mcp", daemon=True)
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(work, self._loop)


def has_library() -> bool:
    """Whether the SDK is installed; does not import it."""
    return importlib.util.find_spec("mcp") is not None


def _run(loop: asyncio.AbstractEventLoop) -> None:
    for name in ("mcp", "client", "httpx2"):  # they log what servers say; we report what matters, without secrets
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
    asyncio.set_event_loop(loop)
    import_module("mcp.client.streamable_http")  # takes a second, which must not count as a server's
    try:
        loop.run_forever()
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


async def _all_listed(connections: list[ServerConnection], awaited: set[str]) -> list[Listing]:
    """Return the listings of servers; take the name of each from ``awaited`` when it has answered or failed."""

    async def listed(each: ServerConnection) -> Listing:
        try:
            return await each.tools()
        finally:
            awaited.discard(each.server.name)

    found = await asyncio.gather(*map(listed, connections), return_exceptions=True)
    return [each for each in found if isinstance(each, Listing)]


async def _all_closed(connections: list[ServerConnection]) -> None:
    await asyncio.gather(*(each.close() for each in connections), return_exceptions=True)


def _cancel(waiting: concurrent.futures.Future[Any]) -> None:
    waiting.cancel()
