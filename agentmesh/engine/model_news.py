"""Shares with all other workers, through the database, what this process learns of models and their servers.

Such news says which model is paused, and which abilities a server has. A process that serves several databases passes
news on from each to the others, so that workers that serve only one of these hear of it too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial

from agentmesh.domain.errors import AgentmeshError
from agentmesh.domain.log import logger
from agentmesh.domain.rows import Capability, Pause
from agentmesh.llm.capabilities import Capabilities
from agentmesh.llm.pauses import Pauses
from agentmesh.store import capabilities as capability_rows
from agentmesh.store import pauses as pause_rows
from agentmesh.store.tx import Database

LOG = logger(__name__)


class ModelNews:
    """Knowledge of this process about its models, exchanged with all other processes; thread-safe.

    If a database cannot be told, a pause costs its workers one more refusal, and they find out what a server can once
    more.
    """

    def __init__(self, pauses: Pauses, capabilities: Capabilities, me: str) -> None:
        """``me`` names this process, for people who look into the tables."""
        self._pauses = pauses
        self._capabilities = capabilities
        self._me = me
        self._databases: tuple[Database, ...] = ()
        pauses.on_pause = lambda pause: self._tell(pause, self._databases)
        capabilities.on_news = lambda found: self._tell(found, self._databases)

    def share(self, database: Database) -> Callable[[], None]:
        """Tell this database's workers from now on; return a function that reads the news from them."""
        if database not in self._databases:
            self._databases = (*self._databases, database)
        return partial(self._read, database)

    def _read(self, database: Database) -> None:
        others = tuple(one for one in self._databases if one is not database)
        for pause in database.run(pause_rows.current, idempotent=True):
            if self._pauses.heed(pause):
                self._tell(pause, others)
        for found in database.run(capability_rows.current, idempotent=True):
            if self._capabilities.heed(found):
                self._tell(found, others)

    def _tell(self, news: Pause | Capability, databases: Sequence[Database]) -> None:
        """Write news into the databases: the first at once, the others beside it, because one of them may be away."""
        for database in databases[1:]:
            try:
                threading.Thread(target=self._write, args=(news, database), name="tell news", daemon=True).start()
            except RuntimeError as error:  # the call that brought the news must not fail
                LOG.warning("other workers were not told about %s/%s: %s", news.provider, news.model, error)
        for database in databases[:1]:
            self._write(news, database)

    def _write(self, news: Pause | Capability, database: Database) -> None:
        try:
            if isinstance(news, Pause):
                database.run(pause_rows.pause, news, self._me, idempotent=True)
            else:
                database.run(capability_rows.learn, news, self._me, idempotent=True)
        except AgentmeshError as error:
            what = "of a pause of" if isinstance(news, Pause) else "about"
            LOG.warning("other workers were not told %s %s/%s: %s", what, news.provider, news.model, error)
