"""Figures of the whole mesh for scrapes: they come from the database, and no scrape waits long for it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Final

from agentmesh.domain.errors import AgentmeshError
from agentmesh.domain.log import logger
from agentmesh.store.metrics import MeshFigures

LOG = logger(__name__)

_FRESH: Final = 1.0
"""An answer serves further scrapes for this many seconds, however many come."""


class LatestFigures:
    """Asks on a thread of its own, one question at a time; for any thread."""

    def __init__(self, ask: Callable[[], MeshFigures], patience: float = 3.0) -> None:
        """``patience``: the seconds that a caller waits for an answer; ``ask`` may take longer."""
        self._ask = ask
        self._patience = patience
        self._lock = threading.Lock()
        self._answered: threading.Event | None = None
        """Set once the question that is being asked has its answer; None if none is being asked."""
        self._found: MeshFigures | None = None
        self._found_at = -math.inf

    def get(self) -> MeshFigures | None:
        """Return figures that are at most a second older than this call; None if the database gives none in time."""
        since = time.monotonic() - _FRESH
        with self._lock:
            if self._found_at >= since:
                return self._found
            answered = self._answered = self._answered or self._begin()
        answered.wait(self._patience)
        with self._lock:
            return self._found if self._found_at >= since else None

    def _begin(self) -> threading.Event:
        answered = threading.Event()
        threading.Thread(target=self._fetch, args=[answered], name="metrics", daemon=True).start()
        return answered

    def _fetch(self, answered: threading.Event) -> None:
        found = None
        try:
            found = self._ask()
        except AgentmeshError as error:
            LOG.debug("the mesh has no figures: %s", error)
        finally:
            with self._lock:
                self._found, self._found_at = found, time.monotonic()
                self._answered = None
            answered.set()
