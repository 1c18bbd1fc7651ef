"""The databases of a mesh, and what this program does in each of them: one, or several with names."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from agentmesh import app
from agentmesh.api.runtime import Runtime, tell_failure
from agentmesh.domain.errors import AgentmeshError, UsageError
from agentmesh.domain.ids import SessionId
from agentmesh.domain.log import logger
from agentmesh.store.sizes import POOL_SIZE

if TYPE_CHECKING:
    from agentmesh.app.databases import Databases
    from agentmesh.app.served_databases import ServedDatabases
    from agentmesh.config.settings import Settings
    from agentmesh.engine.worker import Failure

LOG = logger(__name__)

Answer = TypeVar("Answer")

_TICK = 1.0
"""Seconds between two looks for a database that is away."""


class Runtimes:
    """A runtime for each database, made when it is opened, with the program's own tools and types; thread-safe."""

    def __init__(self, settings: Settings, *, role: str, what: str, background_workers: bool) -> None:
        """Open all databases that answer; raise the error of the first if none does. ``role`` as for ``open_mesh``."""
        self._background_workers = background_workers
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._made: dict[app.Mesh, Runtime] = {}
        self._gifts: list[Callable[[Runtime], None]] = []
        self._served: list[ServedDatabases] = []
        """For each block of this process that serves all databases now, their workers."""
        self._several: Databases | None = None
        if not settings.has_several_databases:
            self._add(app.open_mesh(settings, role=role, what=what))
            return
        from agentmesh.app.databases import Databases

        self._several = Databases(settings, role=role, what=what, pool_size=POOL_SIZE, opened=self._add)
        try:
            self.ask(lambda _: None)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop this process's workers, and close all connections; idempotent. A forked process has none of its own."""
        if os.getpid() != self._process:
            return
        runtimes = self._all()
        for runtime in runtimes:
            runtime.hearing.close()
        if self._several:
            self._several.close()
        for runtime in runtimes:
            runtime.core.close()

    # Which one

    @property
    def names(self) -> tuple[str, ...]:
        """The databases' names, in the order of the configuration; none for a single one."""
        return tuple(self._several.names) if self._several else ()

    @property
    def core(self) -> app.Mesh:
        """The composition root of the only database; raise UsageError if there are several."""
        if self._several:
            raise UsageError(f"There are several databases: {', '.join(self.names)}.", hint="A session is in one.")
        return self.first.core

    @property
    def first(self) -> Runtime:
        """The runtime of one of the databases, for what is the same in all."""
        return self._all()[0]

    def named(self, name: str) -> Runtime:
        """Return the runtime of the database with a name; raise ConfigError if it is unknown, or a DatabaseError."""
        if self._several:
            return self._of(self._several.mesh(name))
        settings = self.core.settings
        settings.of_database(name)
        if settings.database not in (None, name):
            raise UsageError(
                f"this mesh is on the database {settings.database} alone", hint="agentmesh.open() without its name."
            )
        return self.first

    def for_new_session(self) -> Runtime:
        """Return the runtime of a database where a session may begin, drawn by weight."""
        return self._of(self._several.for_new_session()) if self._several else self.first

    def find(self, session: str | None, workdir: Path) -> Runtime:
        """Return the runtime of the database that has a session, by default the newest of a directory."""
        if self._several is None:
            return self.first
        found = self._several.find(session, (), workdir)
        if session is None:
            _warn_without(self._several.silent)
        return self._of(found)

    def of_session(self, session: SessionId) -> Runtime:
        """Return the runtime of the database that has a session."""
        return self.find(str(session), Path())

    def of_agent(self, who: str) -> Runtime | None:
        """Return the runtime of the database that has the agent whose id is this or begins with it, or None."""
        if self._several is None:
            return self.first
        found = self._several.of_agent(who)
        return None if found is None else self._of(found)

    def ask(self, question: Callable[[app.Mesh], Answer]) -> Mapping[str, Answer]:
        """Return the answer of each database; log those that did not answer. Raise the first error if none answered."""
        if self._several is None:
            return {"": question(self.core)}
        answers = self._several.ask(question)
        given = answers.some()
        _warn_without(answers.missing)
        return given

    # Workers

    @property
    def has_worker(self) -> bool:
        """Whether this process runs agents now."""
        with self._lock:
            return bool(self._served) or any(runtime.has_worker for runtime in self._made.values())

    @contextmanager
    def worker(self, concurrency: int | None) -> Iterator[None]:
        """Run the agents of all databases in this process while the block lasts, and join those that come back."""
        if self._several is None:
            with self.first.worker(None, concurrency):
                yield
            return
        from agentmesh.app.served_databases import ServedDatabases
        from agentmesh.tools.environment import conceal_process

        conceal_process()
        how = {"concurrency": concurrency, "on_failure": tell_failure}
        served = ServedDatabases.of_several(self._several, _log, how)
        try:
            served.start()
            with self._lock:
                self._served.append(served)
            try:
                with _joining(served):
                    yield
            finally:
                with self._lock:
                    self._served.remove(served)
        finally:
            served.stop()
        if served.failed:
            raise served.failed

    # The program's own tools and types

    def give(self, gift: Callable[[Runtime], None]) -> None:
        """Do something with each runtime, also with those that are made later."""
        with self._lock:
            self._gifts.append(gift)
            for runtime in self._made.values():
                gift(runtime)

    # Within

    def _add(self, core: app.Mesh) -> None:
        runtime = Runtime(core, background_workers=self._background_workers, failures=partial(self._failures, core))
        with self._lock:
            for gift in self._gifts:
                gift(runtime)
            self._made[core] = runtime

    def _failures(self, core: app.Mesh) -> Sequence[Failure | None]:
        with self._lock:
            return [failure for served in self._served for failure in served.failures_of(core)]

    def _of(self, core: app.Mesh) -> Runtime:
        with self._lock:
            return self._made[core]

    def _all(self) -> list[Runtime]:
        with self._lock:
            return list(self._made.values())


@contextmanager
def _joining(served: ServedDatabases) -> Iterator[None]:
    """Look for databases that are away while the block lasts."""
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_TICK):
            try:
                served.join_again()
            except AgentmeshError as error:
                LOG.warning("%s", error)

    thread = threading.Thread(target=look, name="databases that are away", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _warn_without(missing: Mapping[str, AgentmeshError]) -> None:
    for name, error in missing.items():
        LOG.warning("Without the database %s: %s", name, error)


def _log(words: str) -> None:
    LOG.warning("%s", words)  # a database is away, or is back
