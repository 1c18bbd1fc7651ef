"""Keeps the pauses of this process's models and those of all other workers alike, through the database."""

from __future__ import annotations

from agentmesh.domain.errors import AgentmeshError
from agentmesh.domain.log import logger
from agentmesh.domain.rows import Pause
from agentmesh.llm.pauses import Pauses
from agentmesh.store import pauses
from agentmesh.store.tx import Database

LOG = logger(__name__)


class SharedPauses:
    """Shares pauses between this process and the others; if that fails, each is refused once more."""

    def __init__(self, database: Database, local: Pauses, me: str) -> None:
        """``me`` names this process, for people who look into the table."""
        self._database = database
        self._local = local
        self._me = me
        local.on_pause = self._tell

    def read(self) -> None:
        """Read the pauses of all workers and heed them."""
        for pause in self._database.run(pauses.current, idempotent=True):
            self._local.heed(pause)

    def _tell(self, pause: Pause) -> None:
        try:
            self._database.run(pauses.pause, pause, self._me, idempotent=True)
        except AgentmeshError as error:
            LOG.warning("other workers were not told of a pause of %s/%s: %s", pause.provider, pause.model, error)
