"""Tells an owner of the lines that matched, on a thread of its own: neither the command nor its output waits for it.

While the database is away, it keeps the first line and counts the further ones. It sends the same words again until
the database has answered, so the owner is told exactly once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from agentmesh.domain.errors import AgentmeshError, DatabaseError
from agentmesh.domain.log import logger

LOG = logger(__name__)

_RETRY: Final = 1.0


class MatchedLines:
    """The lines that matched in the output of one process, and that its owner has not been told yet."""

    def __init__(
        self, tell: Callable[[str, int], bool], tell_end: Callable[[], bool], closing: threading.Event, name: str
    ) -> None:
        """``tell`` stores a line and how many have matched so far, ``tell_end`` that no more lines are compared.

        Both return whether the process goes on for the database. ``closing`` ends every new try.
        """
        self._tell = tell
        self._tell_end = tell_end
        self._closing = closing
        self._name = name
        self._changed = threading.Condition()
        self._line: str | None = None
        self._matches = 0
        self._gave_up = False
        self._ended = False
        self._thread = threading.Thread(target=self._tell_all, name=f"{name} matches", daemon=True)
        self._thread.start()

    def add(self, line: str) -> None:
        """Take a line that matched."""
        with self._changed:
            self._line = line if self._line is None else self._line
            self._matches += 1
            self._changed.notify()

    def give_up(self) -> None:
        """Take the news that no more lines are compared."""
        with self._changed:
            self._gave_up = True
            self._changed.notify()

    def close(self) -> None:
        """Return when all is told, or can no longer be told."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join()

    def _tell_all(self) -> None:
        try:
            while (news := self._next()) and self._is_told(news):
                pass
        except AgentmeshError:
            LOG.exception("a line of %s could not be told", self._name)

    def _next(self) -> Callable[[], bool] | None:
        """Wait for news; return how to tell them, None if there will be no more."""
        with self._changed:
            self._changed.wait_for(lambda: self._line is not None or self._gave_up or self._ended)
            if self._line is not None:
                line, matches, self._line = self._line, self._matches, None
                return lambda: self._tell(line, matches)
            gave_up, self._gave_up = self._gave_up, False
            return self._tell_end if gave_up else None

    def _is_told(self, news: Callable[[], bool]) -> bool:
        """Try until the database has answered; return whether there is still somebody to tell."""
        while True:
            try:
                return news()
            except DatabaseError as error:
                LOG.warning("a line of %s cannot be told yet: %s", self._name, error)
            if self._closing.wait(_RETRY):
                return False
