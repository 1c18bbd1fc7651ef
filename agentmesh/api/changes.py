"""Learn that something changed in a session. This is only a hint: a reader that wakes up reads the rows."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterable
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from agentmesh.app.outage import Outage
from agentmesh.domain.errors import DatabaseUnreachable
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.store.status import OUTPUT, session_channel

LIVE_TEXT = "live "
"""Beginning of a hint with streamed text; the finished message arrives as a row."""
_NOBODY = AgentId(uuid.UUID(int=0))
"""Stands for a change that concerns no agent's rows."""
_PACE = 0.1
"""Shortest time, in seconds, between two wake-ups: no screen needs more than ten per second."""
_RESTS = ("idle", "dead")
"""First words of the hints that an agent has come to rest."""
_SWEEP = 5.0
"""Seconds after which the reader should look at every agent, whatever it has heard."""


class _Hint(NamedTuple):
    """The news of one notification about one agent."""

    agent: AgentId | None
    """None: it may concern any."""
    rests: bool = False
    """Whether it has come to rest."""


class ChangeListener(Protocol):
    """A listener that is not started yet."""

    def listen(self, *channels: str) -> None:
        """Add channels to listen on."""

    def start(self) -> None:
        """Begin; raise if that fails."""

    def stop(self) -> None:
        """End."""


class ListenerSource(Protocol):
    """Makes listeners: ``app.Mesh``, or ``SharedListener``, whose listeners share one connection."""

    def listener(self, on_notify: Callable[[str, str], None], on_reconnect: Callable[[], None], /) -> ChangeListener:
        """Return a listener."""


class Changes:
    """The changes since the last look; a context manager. For one thread only, except ``poke``."""

    def __init__(
        self, mesh: ListenerSource, sessions: Iterable[SessionId], on_live: Callable[[str], None] | None = None
    ) -> None:
        """``on_live`` gets each hint with streamed text, as JSON, on the listener's thread; the hint also wakes."""
        self._channels = [session_channel(session) for session in set(sessions)]
        # SimpleQueue: a signal handler may call its put in the middle of its get.
        self._heard: SimpleQueue[_Hint] = SimpleQueue()
        self._listener = mesh.listener(self._on_notify, self.poke)
        self._on_live = on_live
        self._not_before = 0.0
        self._swept = time.monotonic()
        self._outage = Outage()

    def __enter__(self) -> Self:
        self._listener.listen(*self._channels)
        self._listener.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.stop()

    def poke(self) -> None:
        """Make ``wait`` return, as if anything might have changed."""
        self._heard.put(_Hint(None))

    def endure(self, error: DatabaseUnreachable) -> None:
        """Wait a moment for a lost database, so that the caller can look again; raise once that has lasted too long."""
        self.wait(self._outage.pause(error))

    def wait(self, seconds: float, working: Collection[AgentId] = ()) -> set[AgentId] | None:
        """Wait up to ``seconds`` for a change; return the agents it concerns, or None for "possibly any".

        Wake-ups are paced, but for the one that matters: once all of ``working``, the agents that ran at the last look,
        have come to rest, it returns at once. Every few seconds it returns None, so that readers also find changes
        without a notification.
        """
        heard: set[AgentId | None] = set()
        left_working = set(working)

        def hear(hint: _Hint) -> bool:
            """Take a hint in; return whether it is the end that the caller waits for."""
            heard.add(hint.agent)
            if not hint.rests or hint.agent not in left_working:
                return False
            left_working.discard(hint.agent)
            return not left_working

        deadline = time.monotonic() + seconds
        try:
            ended = hear(self._heard.get(timeout=max(seconds, 0.0)))
            while not ended and (left := self._not_before - time.monotonic()) > 0:
                ended = hear(self._heard.get(timeout=min(left, max(deadline - time.monotonic(), 0.01))))
            while True:
                hear(self._heard.get_nowait())
        except Empty:
            pass
        now = time.monotonic()
        self._not_before = now + _PACE
        if None in heard or now - self._swept >= _SWEEP:
            self._swept = now
            return None
        return {agent for agent in heard if agent and agent != _NOBODY}

    def _on_notify(self, _channel: str, payload: str) -> None:
        """Take the agents from a hint such as ``mail <id>``; a hint without agents may concern any."""
        if payload.startswith(LIVE_TEXT):
            if self._on_live:
                self._on_live(payload.removeprefix(LIVE_TEXT))
                self._heard.put(_Hint(_NOBODY))
            return
        if payload.startswith(OUTPUT):
            return
        what, *names = payload.split(" ")
        try:
            agents = [AgentId(uuid.UUID(agent)) for agent in names]
        except ValueError:
            agents = []
        for agent in agents:
            self._heard.put(_Hint(agent, what in _RESTS))
        if not agents:
            self.poke()
