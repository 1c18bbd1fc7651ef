"""wait, as a request that may last a day: it reports progress, and its client may give it up at any moment.

An abandoned wait leaves nothing behind and takes no mail: messages stay unread, for the next wait.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
from anyio import to_thread

from agentmesh.app.outage import Outage
from agentmesh.domain import wait_result
from agentmesh.domain.errors import AgentmeshError, DatabaseUnreachable, Fenced
from agentmesh.domain.log import logger
from agentmesh.domain.states import WaitOutcome
from agentmesh.mcp import tools
from agentmesh.mcp.member import Member
from agentmesh.mcp.own_wait import MemberWait
from agentmesh.tools.wait import WaitArgs

LOG = logger(__name__)

Result = TypeVar("Result")
Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Tells the client about the request's progress: seconds passed, time limit in seconds, text."""

_EVERY = 5.0
"""Seconds between two looks at a wait without notifications."""
_APART = 0.2
"""Shortest time, in seconds, between two reports."""


class Waits:
    """The waits of one member. There is one at a time, as for every agent; another is refused."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._own = MemberWait(member)
        self._turn = anyio.Lock()  # an abandoned wait is over before the next one begins
        self._followed: asyncio.Event | None = None  # the event that wakes the registered wait

    async def wait(self, given: Mapping[str, Any], report: Report) -> dict[str, Any]:
        """Wait, and return the tool's result; raise ToolError or AgentmeshError if refused."""
        args, note = tools.read("wait", given)
        await in_thread(self._member.join)
        loop, woken = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            loop.call_soon_threadsafe(woken.set)

        unwatch = self._member.watch(wake)
        try:
            result = await self._until_over(args, woken, report)
        finally:
            unwatch()
        return wait_result.in_order({**result, "note": note} if note else result)

    async def _until_over(self, args: WaitArgs, woken: asyncio.Event, report: Report) -> dict[str, Any]:
        begun = time.monotonic()
        async with self._turn:
            result = await in_thread(self._own.begin, args)
            if result is not None:
                return result
            self._followed = woken
            async with self._given_up_in_turn(woken):
                pass  # its client may have given it up while it began
        try:
            return await self._follow(args, begun, woken, report)
        except BaseException:
            with anyio.CancelScope(shield=True):
                async with self._turn:
                    await self._give_up(woken)
            raise

    async def _follow(self, args: WaitArgs, begun: float, woken: asyncio.Event, report: Report) -> dict[str, Any]:
        """Look at each notification, until the wait is over."""
        outage = Outage()
        report_at = care_at = begun
        while True:
            gone = time.monotonic() - begun
            left = args.timeout - gone
            try:
                async with self._turn, self._given_up_in_turn(woken):
                    result = await in_thread(self._own.look, WaitOutcome.TIMEOUT if left <= 0 else None)
                    if result is not None:
                        return result
                    if (now := time.monotonic()) >= report_at:
                        await report(gone, args.timeout, await in_thread(self._own.words, args))
                        report_at = now + _APART
                    if now >= care_at:
                        await in_thread(self._member.ensure_served)
                        care_at = now + _EVERY
                outage.end()
            except DatabaseUnreachable as error:
                if self._member.is_leaving:
                    raise
                left = outage.pause(error)
                LOG.warning("a wait goes on: %s", error)
            with anyio.move_on_after(min(max(left, 0.0), _EVERY)):
                await woken.wait()
            woken.clear()

    @asynccontextmanager
    async def _given_up_in_turn(self, woken: asyncio.Event) -> AsyncIterator[None]:
        """If the client has given up meanwhile, end the wait before the turn passes to the next one."""
        try:
            yield
            await anyio.lowlevel.checkpoint()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._give_up(woken)
            raise

    async def _give_up(self, woken: asyncio.Event) -> None:
        """End this wait, unless it has ended; the caller has the turn."""
        if self._followed is woken:
            self._followed = None
            await self._forsake()

    async def _forsake(self) -> None:
        try:
            await in_thread(self._own.forsake)
        except Fenced:
            LOG.debug("a wait that was given up went with its agent")
        except AgentmeshError as error:
            log = LOG.debug if self._member.is_leaving else LOG.warning
            log("a wait that was given up is ended as soon as the database answers: %s", error)


async def in_thread(function: Callable[..., Result], *args: Any) -> Result:
    """Call a blocking function in a thread; it is never abandoned in the middle."""
    return await to_thread.run_sync(partial(function, *args))
