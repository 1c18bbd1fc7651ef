"""Read what changes in a session: each row exactly once, even if notifications get lost."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from agentmesh.api.events import AgentForked, RowAppended, StatusChanged
from agentmesh.app.cursors import Cursors
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.rows import AgentView
from agentmesh.store import agents, sessions

if TYPE_CHECKING:
    from agentmesh.store.tx import Database


class Following:
    """A reader's position in a session. For one thread at a time."""

    def __init__(self, database: Database, session: SessionId) -> None:
        self._database = database
        self._session = session
        self._cursors = Cursors(database)
        self._known: dict[AgentId, str] = {}

    def look(self) -> Sequence[AgentView]:
        """Return all agents in their current state; raise UnknownSession if the session was deleted or has moved."""
        found = self._database.run(agents.view, self._session, idempotent=True)
        if not found:  # the root stays as long as its session
            self._database.run(sessions.require_still, self._session, idempotent=True)
        return found

    def skip(self) -> Sequence[AgentView]:
        """Skip everything up to now; return the agents."""
        now = self.look()
        for agent in now:
            self._known[agent.id] = agent.status
            self._cursors.skip(agent.id)
        return now

    def changes(
        self, now: Sequence[AgentView], heard: Collection[AgentId] | None = None
    ) -> Iterator[AgentForked | RowAppended | StatusChanged]:
        """Yield what is new in this look, for the agents in ``heard`` (None: all) and those whose status has changed.

        For each agent, first its beginning, then its rows, then its status.
        """
        for agent in now:
            is_new = agent.id not in self._known
            changed = self._known.get(agent.id) != agent.status
            if is_new:
                self._known[agent.id] = ""  # reported once, even if the database is lost below
                yield AgentForked(agent)
            if is_new or changed or heard is None or agent.id in heard:
                for row in self._cursors.new(agent.id):
                    yield RowAppended(agent, row)
            if changed:
                self._known[agent.id] = agent.status
                yield StatusChanged(agent)
