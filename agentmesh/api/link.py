"""How the handles of one session and its agents reach the database, have the session served, and wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from agentmesh.api.changes import Changes
from agentmesh.api.own_wait import AgentWait, OwnWaitResult, read
from agentmesh.api.resting import TICK, WaitResult, until_rest
from agentmesh.api.seconds import Span, seconds_of
from agentmesh.domain.errors import DatabaseUnreachable, Interrupted, Refused, UnknownAgent, UsageError
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.rows import AgentView
from agentmesh.store import agents, sessions

if TYPE_CHECKING:
    from agentmesh.api.runtime import Runtime
    from agentmesh.domain.cancel import Cancel

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class CallSurroundings:
    """Where a handle is used: in the program, or in a tool that an agent has called."""

    cancel: Cancel | None = None
    """Ends every wait."""
    aside: Callable[[], AbstractContextManager[None]] = nullcontext
    """Context entered while a handle waits."""


class SessionLink:
    """One session for its handles, which keep only their own identity besides it."""

    def __init__(self, runtime: Runtime, session: SessionId, root: AgentId, around: CallSurroundings) -> None:
        self.runtime = runtime
        self.session = session
        self.root = root
        self._around = around

    def __reduce__(self) -> NoReturn:
        raise UsageError(
            "the handle of a session or an agent belongs to its process",
            hint="Send its id, and use mesh.resume_session(id) or mesh.find_agent(id) there.",
        )

    def run(self, function: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Result:
        """Call a store function; raise as ``within``."""
        found: Result = self.within(self.runtime.core.database.run, function, *args, **kwargs)
        return found

    def within(self, function: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Result:
        """Call a function about the session; raise UnknownSession if it finds nothing because the session is gone.

        Another program may have deleted the session, or moved it to another database: then SessionMoved says where.
        """
        try:
            found = function(*args, **kwargs)
        except Refused:  # such as an unknown agent or todo
            self.require_still()
            raise
        if not found:
            self.require_still()
        return found

    def require_still(self) -> None:
        """Raise UnknownSession if the session was deleted; SessionMoved, which is one, says where it is."""
        self.runtime.core.database.run(sessions.require_still, self.session, idempotent=True)

    def list_agents(self, *, everybody: bool) -> list[AgentView]:
        """Return the living agents, oldest first; with ``everybody`` the dead too."""
        found = self.run(agents.view, self.session, idempotent=True)
        return [one for one in found if everybody or one.died_at is None]

    def try_to_serve(self) -> None:
        """Start a worker if none serves the session."""
        self._serve(self.runtime.try_to_serve)

    def wait(self, listed: Sequence[AgentId], timeout: Span | None) -> WaitResult:
        """Wait until these agents (none listed: all) are idle or dead, or the time is up."""
        seconds = seconds_of(timeout, "timeout")
        with self.waiting() as wakes:
            database = self.runtime.core.database
            return until_rest(database, wakes, [self.session], listed, seconds, check=self.check, serve=self.serve)

    def wait_as(self, waiter: AgentId, names: Sequence[str], timeout: Span | None) -> OwnWaitResult:
        """Let an idle agent wait itself, and follow its wait to the end."""
        seconds = seconds_of(timeout, "timeout")
        own = AgentWait(self.runtime.core.database, self.session, waiter)
        with self.waiting() as wakes:
            self.serve(True)
            result = self.within(own.begin, names, seconds)
            while result is None:
                anything = wakes.wait(TICK, [waiter]) is None
                self.check()
                try:
                    result = own.look()
                    if result is None and anything:
                        self.serve(False)
                except DatabaseUnreachable as error:
                    wakes.endure(error)
        return read(result)

    @contextmanager
    def waiting(self, on_live: Callable[[str], None] | None = None) -> Iterator[Changes]:
        """Yield the session's changes; a cancellation wakes the reader too."""
        with self._around.aside(), Changes(self.runtime.hearing, [self.session], on_live) as wakes:
            take_back = self._around.cancel.on_set(wakes.poke) if self._around.cancel else lambda: None
            try:
                yield wakes
            finally:
                take_back()

    def serve(self, first: bool) -> None:
        """Start a worker if none runs the awaited agents; for the ``first`` look it is required."""
        self._serve(self.runtime.require_served if first else self.runtime.try_to_serve)

    def _serve(self, serve: Callable[[SessionId, AgentId], None]) -> None:
        try:
            serve(self.session, self.root)
        except UnknownAgent:
            self.require_still()
            raise

    def check(self) -> None:
        """Raise Interrupted if the mesh was closed or the waiting tool was stopped, and why an own worker has ended."""
        if self.runtime.hearing.closed:
            raise Interrupted("the mesh was closed", hint="The agents go on if a worker serves them.")
        if self._around.cancel and self._around.cancel.is_set():
            raise Interrupted("the tool was stopped", hint="Its agent was interrupted or killed, or its worker stops.")
        self.runtime.require_own_worker(self.session)
