"""The parts that all handles of one mesh share: the database, one LISTEN connection, and this process's workers."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agentmesh.api.shared_listener import SharedListener
from agentmesh.domain.errors import AgentmeshError, NoModel, UsageError
from agentmesh.domain.ids import AgentId, SessionId, short
from agentmesh.domain.log import logger
from agentmesh.domain.rows import Session as Row
from agentmesh.store import sessions

if TYPE_CHECKING:
    from agentmesh import app
    from agentmesh.engine.worker import Failure, Worker

LOG = logger(__name__)


def tell_failure(why: Failure) -> None:
    """Log why a worker of this process has stopped by itself: its block may last for long."""
    LOG.error("the worker of this program has stopped: %s %s", why.message, why.hint)


class Runtime:
    """Knows what this process runs, so that every handle can have its session served; thread-safe."""

    def __init__(
        self, core: app.Mesh, *, background_workers: bool, failures: Callable[[], Sequence[Failure | None]] = tuple
    ) -> None:
        """``failures``: for each worker of this database that serves others too, why it has stopped by itself."""
        self.core = core
        self.hearing = SharedListener(core)
        self._background_workers = background_workers
        self._lock = threading.Lock()
        self._failures = failures
        self._own: list[tuple[SessionId | None, Worker]] = []
        """The workers of this database in this process: each for one session, or (None) for all."""
        self._told_failure = ""

    @property
    def has_worker(self) -> bool:
        """Whether this process runs agents now."""
        with self._lock:
            return bool(self._own)

    @contextmanager
    def worker(self, session: SessionId | None, concurrency: int | None) -> Iterator[None]:
        """Run the agents of one session, or (None) of all, in this process while the block lasts."""
        from agentmesh.app.worker import make_worker
        from agentmesh.tools.environment import conceal_process

        conceal_process()
        process = os.getpid()
        worker = make_worker(self.core, session=session, concurrency=concurrency, on_failure=tell_failure)
        try:
            worker.start()
            with self._lock:
                self._own.append((session, worker))
            try:
                yield
            finally:
                with self._lock:
                    self._own.remove((session, worker))
        finally:
            if os.getpid() == process:  # a forked process has neither its threads nor its connections
                worker.stop()
        if worker.failed:
            raise worker.failed

    def start_background_worker(self, session: SessionId) -> bool:
        """Start a worker process if none serves the session and one could; return whether one was started."""
        row = self._row(session)
        return self._problem(row) is None and self.core.ensure_served(row).started

    def try_to_serve(self, session: SessionId, root: AgentId) -> None:
        """Start a worker if none serves the session. If this process has one for it, the database is not asked."""
        if None not in self._own_failures(session):
            self._serve(session, root)

    def require_served(self, session: SessionId, root: AgentId) -> None:
        """Start a worker if the database knows none that serves the session; raise UsageError if none will."""
        if obstacle := self._serve(session, root):
            raise obstacle

    def require_own_worker(self, session: SessionId) -> None:
        """Raise why the workers of this process that served the session have stopped by themselves, if all have."""
        failures = self._own_failures(session)
        if failures and (failure := failures[0]) and None not in failures:
            raise type(failure)(failure.message, hint=failure.hint)

    def _own_failures(self, session: SessionId) -> Sequence[Failure | None]:
        """Return, for each worker of this process that serves the session, why it has stopped; None if it runs."""
        with self._lock:
            own = [worker.failed for serves, worker in self._own if serves in (None, session)]
        return [*own, *self._failures()]

    def _serve(self, session: SessionId, root: AgentId) -> UsageError | None:
        """Start a worker if none serves the session; return why none will."""
        serving = self.core.serving
        if serving.is_served(session, serving.root_model(root).partition("/")[0]):
            return None
        row = self._row(session)
        if problem := self._problem(row):
            return problem
        if not self._background_workers:
            return UsageError(
                f"no worker serves session {short(session)}", hint="with mesh.worker(): runs its agents here."
            )
        try:
            self.core.ensure_served(row)
        except (AgentmeshError, OSError) as error:
            LOG.warning("no worker could be started for session %s: %s", session, error)
        self._tell_failure(session)
        return None

    def _tell_failure(self, session: SessionId) -> None:
        """Log why the worker that was started for a session has ended, once for each reason: it is tried again."""
        failure = self.core.serving.failure()
        if failure and failure != self._told_failure:
            self._told_failure = failure
            LOG.warning("no worker serves session %s: one that was started has ended: %s", short(session), failure)

    def _problem(self, session: Row) -> UsageError | None:
        """Return why no background worker could serve the session."""
        obstacle = self.core.serving.obstacle(session)
        if obstacle and obstacle.needs:
            return UsageError(
                f"no running worker has what session {short(session.id)} needs: {', '.join(obstacle.needs)}",
                hint="Register it in this program and run the agents here: with mesh.worker():",
            )
        if obstacle and (why := obstacle.no_model):
            reason = why.message.rstrip(".")
            return NoModel(f"no worker serves session {short(session.id)}, and {reason}", hint=why.hint)
        return None

    def _row(self, session: SessionId) -> Row:
        return self.core.database.run(sessions.get, session, idempotent=True)
