"""Threads that a program needs until it ends; each reports it if an error ends it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from agentmesh.domain.log import logger

LOG = logger(__name__)

Died = Callable[[str, BaseException], None]
"""Receives the name of a thread and the error that ended it."""


def log_death(name: str, error: BaseException) -> None:
    """Log the end of a thread, for programs with nobody else to notify."""
    LOG.critical("the thread %s has ended: %r", name, error, exc_info=error)


class Loop(threading.Thread):
    """A daemon thread that runs one function until the program ends; it calls ``died`` if an error ends it."""

    def __init__(self, work: Callable[[], None], name: str, died: Died = log_death) -> None:
        super().__init__(name=name, daemon=True)
        self._work = work
        self.died = died

    def run(self) -> None:
        """Do the work."""
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001  top frame of the thread: also SystemExit would be missed by nobody
            self.died(self.name, error)
