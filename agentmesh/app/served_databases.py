"""The workers of one process: one for each database that it serves."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from agentmesh.domain.errors import DatabaseError

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.app.databases import Databases
    from agentmesh.app.model_client import ModelClient
    from agentmesh.engine.worker import Failure, Worker

_AGAIN: Final = 10.0
"""Seconds before a database that could not be served is tried again."""


class _DatabaseWorker(NamedTuple):
    """One worker, with the mesh of its database."""

    mesh: Mesh
    worker: Worker


class ServedDatabases:
    """Starts and stops the workers together. A database that is away is joined when it is back."""

    def __init__(self, one: _DatabaseWorker | None, several: _Several | None) -> None:
        self._several = several
        self._workers: dict[str, _DatabaseWorker] = {} if one is None else {"": one}
        self._tried_at = -math.inf

    @classmethod
    def of_one(cls, mesh: Mesh, worker: Worker) -> Self:
        """Serve one database, or one session in it."""
        return cls(_DatabaseWorker(mesh, worker), None)

    @classmethod
    def of_several(cls, databases: Databases, tell: Callable[[str], None], how: Mapping[str, Any]) -> Self:
        """Serve all databases that are not read-only; ``how`` are the arguments of ``make_worker``."""
        return cls(None, _Several(databases, tell, how))

    @property
    def failed(self) -> Failure | None:
        """Why one of them stopped by itself."""
        return next((each.worker.failed for each in list(self._workers.values()) if each.worker.failed), None)

    def failures_of(self, mesh: Mesh) -> list[Failure | None]:
        """Return why the worker of this database has stopped by itself, or None if it runs; empty if it has none."""
        return [each.worker.failed for each in list(self._workers.values()) if each.mesh is mesh]

    @property
    def idle_since(self) -> float | None:
        """Since when (monotonic) none of them has had an agent; None while one has some."""
        idle = [each.worker.idle_since for each in self._workers.values()]
        return None if None in idle else max((since for since in idle if since is not None), default=None)

    @property
    def beat_at(self) -> float:
        """When one of the databases last answered a heartbeat."""
        return max(each.worker.beat_at for each in self._workers.values())

    def are_needed(self) -> bool:
        """Return whether a screen is open, a process runs in the background, or a timer is pending."""
        return any(_is_needed(each.mesh) for each in self._workers.values())

    def start(self) -> None:
        """Register; raise a DatabaseError if no database can be served."""
        if self._several is None:
            for each in self._workers.values():
                each.worker.start()
            return
        self._join(self._several)
        if not self._workers:
            raise self._several.failure()

    def join_again(self) -> None:
        """Try once more to serve the databases that were away."""
        if self._several and time.monotonic() - self._tried_at >= _AGAIN:
            self._join(self._several)

    def stop(self) -> None:
        """Hand all agents over."""
        for each in self._workers.values():
            each.worker.stop()
        if self._several:
            self._several.close()

    def _join(self, several: _Several) -> None:
        self._tried_at = time.monotonic()
        for name, mesh in several.meshes(self._workers).items():
            try:
                worker = several.worker(mesh)
                worker.start()
            except DatabaseError as error:
                several.tell_away(name, error)
                continue
            self._workers[name] = _DatabaseWorker(mesh, worker)
            several.tell_served(name)


class _Several:
    """The databases that are to be served, and what their workers share."""

    def __init__(self, databases: Databases, tell: Callable[[str], None], how: Mapping[str, Any]) -> None:
        self._databases = databases
        self._tell = tell
        self._how = how
        self._served = [name for name, one in databases.settings.databases.items() if not one.read_only]
        self._away: dict[str, DatabaseError] = {}

    @cached_property
    def _client(self) -> ModelClient:
        from agentmesh.app.host_and_user import HostAndUser
        from agentmesh.app.model_client import ModelClient
        from agentmesh.app.models import ConfiguredModels

        settings = self._databases.settings
        return ModelClient(settings, ConfiguredModels(settings, os.environ).providers(), HostAndUser.here())

    def meshes(self, served: Mapping[str, object]) -> Mapping[str, Mesh]:
        """Return the meshes of the databases that are not served yet and answer."""
        if all(name in served for name in self._served):
            return {}
        # Ask all, also those that are served: otherwise a second name for one of them would not be noticed.
        answers = self._databases.ask(lambda mesh: mesh, self._served)
        for name, error in answers.missing.items():
            if name not in served:
                self.tell_away(name, error)
        return {name: mesh for name, mesh in answers.given.items() if name not in served}

    def worker(self, mesh: Mesh) -> Worker:
        """Return a worker, not started."""
        from agentmesh.app.worker import make_worker

        how = dict(self._how)
        if tell := how.get("on_event"):
            how["on_event"] = lambda words: tell(f"{mesh.settings.database}: {words}")
        return make_worker(mesh, client=self._client, **how)

    def tell_served(self, name: str) -> None:
        """Say that a database which was away is served now."""
        if self._away.pop(name, None):
            self._tell(f"the database {name} answers: its agents run")

    def tell_away(self, name: str, error: Exception) -> None:
        """Say once that a database cannot be served."""
        if name not in self._away:
            self._tell(f"the database {name} is not served: {error}")
        self._away[name] = error if isinstance(error, DatabaseError) else DatabaseError(str(error))

    def failure(self) -> DatabaseError:
        """Return why none is served."""
        return next(iter(self._away.values()), DatabaseError("No database may be served: each is read-only."))

    def close(self) -> None:
        """Close what the workers have shared."""
        self._client.close()


def _is_needed(mesh: Mesh) -> bool:
    from agentmesh.store import timers, workers

    run = mesh.database.run
    try:
        return bool(
            mesh.processes.any_running
            or run(workers.screens, idempotent=True)
            or run(timers.any_pending, idempotent=True)
        )
    except DatabaseError:
        return False
