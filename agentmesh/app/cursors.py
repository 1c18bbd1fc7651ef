"""Read agents' transcripts while they grow: each row exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import Row
from agentmesh.domain.states import Kind
from agentmesh.store import transcript

if TYPE_CHECKING:
    from agentmesh.store.tx import Database

_PAGE = 500


class Cursors:
    """The reader's position in each agent's transcript. Rows have no gaps, so all rows above the position are new."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._after: dict[AgentId, int] = {}
        self._ended: set[AgentId] = set()

    def skip(self, agent: AgentId) -> None:
        """Skip the agent's rows up to now."""
        self._after[agent] = self._database.run(transcript.last_seq, agent, idempotent=True)

    def new(self, agent: AgentId) -> Iterator[Row]:
        """Yield the rows since the last call."""
        while agent not in self._ended:
            after = self._after.get(agent, 0)
            page = self._database.run(transcript.own, agent, after, _PAGE, idempotent=True)
            for row in page:
                self._after[agent] = row.seq
                if row.kind == Kind.EVENT and row.content.get("event") == "killed":
                    self._ended.add(agent)
                yield row
            if len(page) < _PAGE:
                return
