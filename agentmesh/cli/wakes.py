"""Hearing that something changed in a session, for commands that follow one. A hint only: who is woken reads."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Iterable
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Self

from agentmesh.domain.errors import DatabaseUnreachable
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.store.status import session_channel

if TYPE_CHECKING:
    from agentmesh.app import Mesh

_LIVE_TEXT = "live "
"""What a hint with streamed text begins with; the finished message comes as a row."""
_PACE = 0.1
"""Seconds from one wake-up to the next at least: no screen needs more than ten a second."""
_MOMENT = 2.0
"""Seconds between two looks for a database that is away."""
_APART = 60.0
"""Seconds without a failure after which the next one begins another outage."""
_LONGEST_OUTAGE = 300.0
"""Seconds; nobody waits longer for a database."""


class Wakes:
    """What was heard since the last look; a context manager. Of the command's thread, but for ``poke``."""

    def __init__(self, mesh: Mesh, sessions: Iterable[SessionId]) -> None:
        self._channels = [session_channel(session) for session in set(sessions)]
        # SimpleQueue: its put may be called by a signal handler in the midst of its get.
        self._heard: SimpleQueue[AgentId | None] = SimpleQueue()
        self._listener = mesh.listener(self._on_notify, self.poke)
        self._not_before = 0.0
        self._lost_since = self._last_loss = -math.inf

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
        self._heard.put(None)

    def endure(self, error: DatabaseUnreachable) -> None:
        """Wait a moment for a database that was lost, so that the caller may look again; raise after long in vain."""
        now = time.monotonic()
        if now - self._last_loss > _APART:
            self._lost_since = now
        self._last_loss = now
        if now - self._lost_since > _LONGEST_OUTAGE:
            raise error
        self.wait(_MOMENT)

    def wait(self, seconds: float) -> set[AgentId] | None:
        """Wait so many seconds for a change; return the agents it concerns, or None for "it may be any"."""
        heard: set[AgentId | None] = set()
        deadline = time.monotonic() + seconds
        try:
            heard.add(self._heard.get(timeout=max(seconds, 0.0)))
            while (left := self._not_before - time.monotonic()) > 0:
                heard.add(self._heard.get(timeout=min(left, max(deadline - time.monotonic(), 0.01))))
            while True:
                heard.add(self._heard.get_nowait())
        except Empty:
            pass
        self._not_before = time.monotonic() + _PACE
        return None if None in heard else {agent for agent in heard if agent}

    def _on_notify(self, _channel: str, payload: str) -> None:
        """Take the agent from a hint such as ``mail <id>``; what names none may concern any."""
        if payload.startswith(_LIVE_TEXT):
            return
        try:
            self._heard.put(AgentId(uuid.UUID(payload.rpartition(" ")[2])))
        except ValueError:
            self.poke()
