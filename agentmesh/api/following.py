"""Reading what changes in a session: each row once, none left out, whatever notifications are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from agentmesh.api.events import AgentForked, RowAppended, StatusChanged
from agentmesh.app.cursors import Cursors
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.rows import AgentView
from agentmesh.store import agents

if TYPE_CHECKING:
    from agentmesh.store.tx import Database


class Following:
    """Where in a session a reader is. Of one thread at a time."""

    def __init__(self, database: Database, session: SessionId) -> None:
        self._database = database
        self._session = session
        self._cursors = Cursors(database)
        self._known: dict[AgentId, str] = {}

    def look(self) -> Sequence[AgentView]:
        """Return all agents as they are now."""
        return self._database.run(agents.view, self._session, idempotent=True)

    def skip(self) -> Sequence[AgentView]:
        """Leave out what there is so far; return the agents."""
        now = self.look()
        for agent in now:
            self._known[agent.id] = agent.status
            self._cursors.skip(agent.id)
        return now

    def changes(
        self, now: Sequence[AgentView], heard: Collection[AgentId] | None = None
    ) -> Iterator[AgentForked | RowAppended | StatusChanged]:
        """Yield what is new in this look, of the agents heard of (None: of all) and those whose status is another.

        Of an agent first its beginning, then its rows, then its status.
        """
        for agent in now:
            is_new = agent.id not in self._known
            changed = self._known.get(agent.id) != agent.status
            if is_new:
                self._known[agent.id] = ""  # told once, also when the database is lost below
                yield AgentForked(agent)
            if is_new or changed or heard is None or agent.id in heard:
                for row in self._cursors.new(agent.id):
                    yield RowAppended(agent, row)
            if changed:
                self._known[agent.id] = agent.status
                yield StatusChanged(agent)
