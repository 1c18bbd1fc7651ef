"""The events of a session as an iterator that ends."""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from agentmesh.api.events import Event, LiveText, RequestAsked, RowAppended
from agentmesh.api.following import Following
from agentmesh.api.seconds import Span, seconds_of
from agentmesh.domain.errors import DatabaseUnreachable, Timeout
from agentmesh.domain.ids import AgentId, SessionId, short
from agentmesh.domain.rows import AgentView
from agentmesh.domain.states import Kind
from agentmesh.store import requests

if TYPE_CHECKING:
    from agentmesh.api.changes import Changes
    from agentmesh.store.tx import Database

_TICK = 1.0
"""Seconds between two looks if no notification arrives."""
_PIECES = 1000
"""Hints with live text that are kept for a slow reader; the oldest are dropped."""
_ENDS_TEXT = (Kind.ASSISTANT, Kind.ERROR, Kind.EVENT)
"""Rows that make earlier streamed text void."""


class Stream:
    """One reader's events."""

    def __init__(self, database: Database, session: SessionId) -> None:
        self._database = database
        self._session = session
        self._following = Following(database, session)
        self._live: deque[str] = deque(maxlen=_PIECES)
        self._void: dict[AgentId, int] = {}
        """The newest row of each agent that ended a streamed text."""
        self._asked: set[UUID] = set()

    def skip(self) -> None:
        """Skip everything up to now."""
        self._following.skip()

    def hear(self, live: str) -> None:
        """Take in a hint with live text, on any thread."""
        self._live.append(live)

    def events(
        self, wakes: Changes, timeout: Span | None, *, check: Callable[[], None], serve: Callable[[bool], None]
    ) -> Iterator[Event]:
        """Yield events until all agents rest, or raise Timeout; ``check`` and ``serve`` as in ``until_rest``."""
        seconds = seconds_of(timeout, "timeout")
        deadline = time.monotonic() + seconds if seconds is not None else math.inf
        heard: set[AgentId] | None = None
        first = True
        while True:
            try:
                now = self._following.look()
                working = [agent.id for agent in now if agent.is_working]
                yield from self._new(now, heard)
                if working:
                    check()
                    if heard is None:
                        serve(first)
                        first = False
            except DatabaseUnreachable as error:
                check()
                wakes.endure(error)
                heard = None
                continue
            if working:
                if (left := deadline - time.monotonic()) <= 0:
                    raise Timeout(f"the time limit passed before session {short(self._session)} was quiet")
                heard = wakes.wait(min(_TICK, left), working)
            elif heard is None:  # every row was read after the look: there are no others
                return
            else:
                heard = None

    def _new(self, now: Sequence[AgentView], heard: set[AgentId] | None) -> Iterator[Event]:
        for change in self._following.changes(now, heard):
            if isinstance(change, RowAppended) and change.kind in _ENDS_TEXT:
                self._void[change.agent.id] = change.row.seq
            yield change
        names = {agent.id: agent for agent in now}
        while self._live:
            yield from self._texts(self._live.popleft(), names)
        yield from self._requests(names)

    def _texts(self, live: str, known: dict[AgentId, AgentView]) -> Iterator[LiveText]:
        for key, (after, place, text) in json.loads(live).items():
            agent = known.get(AgentId(UUID(key)))
            if agent is not None and self._void.get(agent.id, 0) <= after:
                yield LiveText(agent, text, place, after)

    def _requests(self, known: dict[AgentId, AgentView]) -> Iterator[RequestAsked]:
        for request in self._database.run(requests.pending, self._session, idempotent=True):
            if request.id not in self._asked and request.agent_id in known:
                self._asked.add(request.id)
                yield RequestAsked(known[request.agent_id], request)
