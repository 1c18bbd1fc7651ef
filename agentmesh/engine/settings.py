"""Settings that agents of this process share: system prompts and tools. A row never changes, so it is read once."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from agentmesh.domain.rows import ToolSettings
from agentmesh.store import agents
from agentmesh.store.tx import Database

_MOST = 64
"""How many are kept; a session has one, and one more for each agent type and each change by a person."""


class SharedSettings:
    """Settings by their id, the SHA-256 of both parts; any thread may ask."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = Lock()
        self._kept: OrderedDict[str, ToolSettings] = OrderedDict()

    def get(self, settings_id: str) -> ToolSettings:
        """Return the settings, which nobody may change."""
        with self._lock:
            if settings_id in self._kept:
                self._kept.move_to_end(settings_id)
                return self._kept[settings_id]
        found = self._database.run(agents.settings, settings_id, idempotent=True)
        with self._lock:
            self._kept[settings_id] = found
            if len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        return found
