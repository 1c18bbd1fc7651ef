"""Erasing sessions in which nothing has happened for long, with their files.

A session is ended and marked in one commit. From then on nothing can begin in it, and it is not listed. Then its rows
go in small commits, so that no lock is held for long, however large it is. The mark is a lease: if this process dies,
the next one that prunes goes on after a minute.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from agentmesh.domain.errors import AgentmeshError, UnknownSession
from agentmesh.domain.ids import SessionId, short
from agentmesh.domain.log import logger
from agentmesh.store import sessions
from agentmesh.store.sessions import ExpiredSession
from agentmesh.workspace.deleting import files_of, remove_files
from agentmesh.workspace.settling import settle

if TYPE_CHECKING:
    from agentmesh.workspace.files import WorkspaceFiles

LOG = logger(__name__)

_FIRST_ROWS: Final = 200
_MOST_ROWS: Final = 5_000
_QUICK: Final = 0.01
_SLOW: Final = 0.02
"""Seconds. A commit that takes longer makes the next one half as large: none should hold a lock for more than 0.05."""
_FIRST_TIME: Final = 30.0
_EVERY: Final = 3600.0
_STOP_SECONDS: Final = 5.0


def expired(workspaces: WorkspaceFiles, age: int) -> Iterator[ExpiredSession]:
    """Yield the sessions of this host and user in which nothing has happened for so many seconds, the oldest first."""
    run, here = workspaces.database.run, (workspaces.host, workspaces.os_user)
    last: ExpiredSession | None = None
    while page := run(sessions.expired, age, *here, last, idempotent=True):
        yield from page
        last = page[-1]


def prune(
    workspaces: WorkspaceFiles, age: int, is_stopped: Callable[[], bool] = lambda: False
) -> Iterator[ExpiredSession]:
    """Erase those sessions, and those that somebody else has left half erased; yield each once it is gone.

    ``is_stopped`` is asked before each session.
    """
    here = workspaces.host, workspaces.os_user
    left = workspaces.database.run(sessions.half_erased, *here, idempotent=True)
    for found in (iter(left), expired(workspaces, age)):
        for one in found:
            if is_stopped():
                return
            if workspaces.database.run(sessions.begin_erasing, one.id, age, idempotent=True):
                _erase(workspaces, one.id)
                yield one


def _erase(workspaces: WorkspaceFiles, session: SessionId) -> None:
    """Erase a marked session: first its files, which only its rows know."""
    run = workspaces.database.run
    files = files_of(workspaces, session)
    settle(workspaces, files.folders)
    remove_files(workspaces, session, files)
    most = _FIRST_ROWS
    while True:
        began = time.monotonic()
        if not run(sessions.erase_some, session, most, idempotent=True):
            break
        took = time.monotonic() - began
        most = max(most // 2, 1) if took > _SLOW else min(most * 2, _MOST_ROWS) if took < _QUICK else most
    try:
        run(sessions.delete_session, session, idempotent=True)
    except UnknownSession:
        LOG.debug("session %s was erased by somebody else", session)


class Retention:
    """Prunes in a worker: half a minute after its start, and then every hour."""

    def __init__(self, workspaces: WorkspaceFiles, age: int) -> None:
        self._workspaces = workspaces
        self._age = age
        self._next = time.monotonic() + _FIRST_TIME
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def tick(self) -> None:
        """Begin to prune if it is time; a worker's tick calls it."""
        if time.monotonic() < self._next or (self._thread and self._thread.is_alive()):
            return
        self._next = time.monotonic() + _EVERY
        thread = threading.Thread(target=self._run, name="retention", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            LOG.warning("old sessions are erased later: %s", error)
        else:
            self._thread = thread

    def stop(self) -> None:
        """Begin no further session; wait a moment for the one that is being erased."""
        self._stopping.set()
        if self._thread:
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        try:
            for one in prune(self._workspaces, self._age, self._stopping.is_set):
                LOG.warning(
                    "erased session %s: nothing happened in it for longer than [retention] allows", short(one.id)
                )
        except AgentmeshError as error:
            LOG.warning("old sessions were not erased: %s", error)
        except Exception:
            LOG.exception("erasing old sessions failed")
