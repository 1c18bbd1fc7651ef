"""Keeps what this process's models can and what other workers know of them alike, through the database."""

from __future__ import annotations

from agentmesh.domain.errors import AgentmeshError
from agentmesh.domain.log import logger
from agentmesh.domain.rows import Capability
from agentmesh.llm.capabilities import Capabilities
from agentmesh.store import capabilities
from agentmesh.store.tx import Database

LOG = logger(__name__)


class SharedCapabilities:
    """Shares what servers can between this process and the others; if that fails, each finds it out once more."""

    def __init__(self, database: Database, local: Capabilities, me: str) -> None:
        """``me`` names this process, for people who look into the table."""
        self._database = database
        self._local = local
        self._me = me
        local.on_news = self._tell

    def read(self) -> None:
        """Read what all workers know, and heed it."""
        for found in self._database.run(capabilities.current, idempotent=True):
            self._local.heed(found)

    def _tell(self, found: Capability) -> None:
        try:
            self._database.run(capabilities.learn, found, self._me, idempotent=True)
        except AgentmeshError as error:
            LOG.warning("other workers were not told what %s/%s can: %s", found.provider, found.model, error)
