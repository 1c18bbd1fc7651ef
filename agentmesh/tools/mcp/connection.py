"""The connection to one server: started when first needed, restarted after a failure, ended with this program.

All of it runs in the event loop of the MCP thread. A call is carried out at most once: a failure is reported, not
retried, unless the server says that it did nothing because it forgot the session.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentmesh.config.mcp import Mcp, NamedServer
from agentmesh.domain.text import one_line
from agentmesh.tools.guarded_run import Spawner
from agentmesh.tools.mcp.listing import Listing, listing
from agentmesh.tools.mcp.reasons import ServerFailed, SessionForgotten, is_closed, is_refusal, reason
from agentmesh.tools.mcp.secrets import Secrets
from agentmesh.tools.mcp.start import way_to
from agentmesh.tools.mcp.transport import Way, Web, exchange, watch_exchanges

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from agentmesh.tools.mcp.session import Session

_LONGEST_PAUSE: Final = 60.0
"""Longest pause, in seconds, between attempts to start a server that fails."""
_PATIENCE: Final = 2.0
"""Seconds of such a pause that a call waits out."""
_SIGN_OF_LIFE: Final = 5.0
"""Seconds in which a server must answer a ping after one of its calls was given up."""
_UNUSED: Final = 60.0
"""Seconds after which a server is ended that was only asked for its tools."""


class RunState(StrEnum):
    """The state of a server."""

    STOPPED = "not running"
    RUNNING = "running"
    FAILED = "failed"


class ServerConnection:
    """The connection to one server for the agents that work in one directory."""

    def __init__(
        self, server: NamedServer, where: tuple[Path, Path], spawner: Spawner, settings: Mcp, environ: Mapping[str, str]
    ) -> None:
        """``where``: the project that it is configured for, and the directory to start it in."""
        self.server = server
        self.secrets = Secrets(environ)
        self.problem = ""
        """Why it failed last; empty while it works."""
        self.listing = Listing()
        """Its tools when it was last started."""
        self._where = where
        self._spawner = spawner
        self._settings = settings
        self._environ = environ
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Session] | None = None
        self._over = asyncio.Event()
        self._way: Way | None = None
        self._failures = 0
        self._not_before = 0.0
        self._calls = 0
        self._was_called = False
        self._check: asyncio.Task[None] | None = None
        self._later: set[asyncio.Task[None]] = set()

    @property
    def state(self) -> RunState:
        """The state at the moment."""
        if self.problem:
            return RunState.FAILED
        return RunState.STOPPED if self._is_over() else RunState.RUNNING

    async def tools(self) -> Listing:
        """Return its tools; start the server if necessary. Raise ServerFailed."""
        await self._session()
        if not self._was_called:
            self._soon(self._end_unused(self._over))
        return self.listing

    async def call(self, tool: str, arguments: Mapping[str, Any], timeout: float) -> CallToolResult:
        """Call a tool by the name that agents use; raise ServerFailed. Cancelling also tells the server to stop."""
        self._was_called = True
        try:
            return await self._called(tool, arguments, timeout)
        except SessionForgotten:  # it was not carried out: begin a session, and make it once more
            return await self._called(tool, arguments, timeout)

    async def _called(self, tool: str, arguments: Mapping[str, Any], timeout: float) -> CallToolResult:
        session, over = await self._session(), self._over
        watch_exchanges()
        own = self.listing.originals.get(tool)
        if own is None:
            names = one_line(", ".join(self.listing.originals) or "none", 500)
            raise ServerFailed(f"no longer has this tool; it has {names}")
        self._calls += 1
        try:
            async with asyncio.timeout(timeout):
                result = await session.called(own, arguments)
        except asyncio.CancelledError:
            self._check = self._soon(self._see_alive(session, over))
            raise
        except TimeoutError as error:
            self._check = self._soon(self._see_alive(session, over))
            raise ServerFailed(f"did not answer within {timeout:g} s; the call may have taken effect") from error
        except ServerFailed:
            raise
        except Exception as error:  # from the SDK and the libraries below it
            raise await self._what_happened(error, over) from error
        finally:
            self._calls -= 1
        self._failures = 0
        return result

    async def close(self) -> None:
        """End the server."""
        for each in list(self._later):
            each.cancel()
        self._over.set()
        if self._task is not None:
            if self._ready is not None and not self._ready.done():
                self._task.cancel()
            await asyncio.wait([self._task])

    def _is_busy(self) -> bool:
        return self._calls > 0

    def _is_over(self) -> bool:
        return self._task is None or self._task.done() or self._over.is_set()

    async def _session(self) -> Session:
        """Return the session; start the server if it is not running."""
        if self._check is not None:
            await asyncio.wait([self._check])  # learn first whether it hangs
        if self._task is not None and self._over.is_set():
            await asyncio.wait([self._task])  # wait until the old one has ended
        if self._is_over():
            pause = self._not_before - time.monotonic()
            if pause > _PATIENCE:
                raise ServerFailed(f"{self.problem}; it can be started again in {pause:.0f} s")
            if pause > 0:
                await asyncio.sleep(pause)
        if self._is_over():  # another call may have started it meanwhile
            self._over = asyncio.Event()
            self._ready = asyncio.get_running_loop().create_future()
            self._ready.add_done_callback(_seen)
            self._task = asyncio.create_task(self._live(self._ready, self._over))
        assert self._ready is not None  # noqa: S101  made with the task
        return await asyncio.shield(self._ready)

    async def _live(self, ready: asyncio.Future[Session], over: asyncio.Event) -> None:
        """Start the server, keep it until it is no longer wanted or falls silent, and wait for its end."""
        self._way = None
        watch_exchanges()
        was_ended = True
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._settings.start_timeout):
                    session = await self._connected(stack)
                    found = listing(self.server, await session.offered(), self.secrets.hidden)
                self.listing, self.problem = found, ""
                ready.set_result(session)
                await _first_of(over.wait(), self._lost())
                was_ended = over.is_set()
        except Exception as error:  # noqa: BLE001  errors of the SDK or of a foreign program
            if not (over.is_set() and ready.done()):  # otherwise it was ended, and how no longer matters
                self._fail(reason(error, self._way, self._settings.start_timeout))
        else:
            if not was_ended:
                self._fail(_ending(self._way))
        finally:
            over.set()
            if not ready.done():
                ready.set_exception(ServerFailed(self.problem or "was stopped"))

    async def _connected(self, stack: AsyncExitStack) -> Session:
        from agentmesh.tools.mcp.session import Session

        self._way = await way_to(self.server, *self._where, self._spawner, self.secrets, self._environ)
        session = await stack.enter_async_context(Session(await stack.enter_async_context(self._way.streams())))
        await session.begin()
        return session

    async def _lost(self) -> None:
        assert self._way is not None  # noqa: S101  connected
        await self._way.lost()

    async def _what_happened(self, error: Exception, over: asyncio.Event) -> ServerFailed:
        """Return why a call failed; if the server is lost, make sure that the next call starts it again."""
        from mcp.shared.exceptions import MCPError
        from pydantic import ValidationError

        if is_closed(error) and self._task is not None:
            ended, _ = await asyncio.wait([self._task], timeout=_SIGN_OF_LIFE)  # it finds out how the server ended
            if ended:
                return _failure(self.problem or "was ended", has_effect=not exchange().is_unsent)
        why = self.secrets.hidden(reason(error, self._way, self._settings.start_timeout))
        if isinstance(self._way, Web):
            if exchange().is_of_forgotten_session:
                over.set()
                return SessionForgotten(why)
            is_answer = isinstance(error, ValidationError) or (isinstance(error, MCPError) and not is_closed(error))
            if self._way.ending() or not is_answer:
                self._end(why)
        return _failure(why, has_effect=not is_refusal(error, self._way))

    async def _see_alive(self, session: Session, over: asyncio.Event) -> None:
        """End a process that hangs: its call was given up, and it does not even answer a ping."""
        from mcp.shared.exceptions import MCPError

        if self._is_busy() or over.is_set() or isinstance(self._way, Web):
            return
        try:
            async with asyncio.timeout(_SIGN_OF_LIFE):
                await session.send_ping()
        except TimeoutError:
            if not self._is_busy() and over is self._over:
                self._end("hung after a call that was given up, and was ended")
        except MCPError:
            return  # an error is an answer too

    async def _end_unused(self, over: asyncio.Event) -> None:
        await asyncio.sleep(_UNUSED)
        if not self._was_called:
            over.set()

    def _end(self, why: str) -> None:
        """End a server that is of no use; the next call starts it again."""
        if not self._over.is_set():
            self._over.set()
            self._fail(why)

    def _fail(self, why: str) -> None:
        self.problem = self.secrets.hidden(why)
        self._failures += 1
        self._not_before = time.monotonic() + min(2.0 ** (self._failures - 1), _LONGEST_PAUSE)

    def _soon(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._later.add(task)
        task.add_done_callback(self._later.discard)
        return task


def _failure(why: str, *, has_effect: bool) -> ServerFailed:
    return ServerFailed(f"{why}; the call may have taken effect" if has_effect else why)


def _ending(way: Way | None) -> str:
    return (way.ending() if way else "") or "is gone"


async def _first_of(*work: Coroutine[Any, Any, Any]) -> None:
    """Wait until one of these is done, and cancel the others."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


def _seen(ready: asyncio.Future[Any]) -> None:
    """Mark a failure as retrieved, even if nobody waits for it any more."""
    if not ready.cancelled():
        ready.exception()
