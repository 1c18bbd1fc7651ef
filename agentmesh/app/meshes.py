"""The meshes of several databases: each is opened when it is wanted, and all are asked at the same time."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Final, Generic, NamedTuple, Self, TypeVar

from agentmesh.app.mesh import Mesh, open_mesh
from agentmesh.config.settings import Settings
from agentmesh.domain.errors import AgentmeshError, ConfigError, DatabaseError, DatabaseUnreachable
from agentmesh.store import lineage

Answer = TypeVar("Answer")

_PATIENCE: Final = 2.0
"""Seconds that all wait for the slowest database. The embedded server may take longer, because it may have to start."""
_ANSWER: Final = 90.0
"""Seconds that a database which has let us in may take to answer. Statements have shorter limits of their own."""
_AGAIN: Final = 10.0
"""Seconds before a database that did not answer is asked again."""


class DatabaseAnswers(NamedTuple, Generic[Answer]):
    """The answers of databases to a question, in the order of the configuration."""

    given: Mapping[str, Answer]
    missing: Mapping[str, AgentmeshError]
    """Why the others have not."""

    def some(self) -> Mapping[str, Answer]:
        """Return the answers; raise the error of the first database if none has answered."""
        if not self.given:
            raise next(iter(self.missing.values()))
        return self.given


class Meshes:
    """Opens a mesh for each database when it is wanted, and asks all of them at once; thread-safe."""

    def __init__(
        self,
        settings: Settings,
        *,
        role: str,
        what: str,
        environ: Mapping[str, str] = os.environ,
        pool_size: int = 2,
        opened: Callable[[Mesh], None] = lambda _: None,
    ) -> None:
        """Connect to nothing yet; the arguments are those of ``open_mesh``. ``opened`` gets each mesh first."""
        self.settings = settings
        self._role, self._what, self._environ, self._pool_size = role, what, environ, pool_size
        self._opened = opened
        self._meshes = {name: _Slot() for name in settings.databases}
        self._closed = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self, keep: Mesh | None = None) -> None:
        """Close all meshes, except one that the caller closes; one that is being opened is closed once it is open."""
        self._closed.set()
        for slot in self._meshes.values():
            if slot.lock.acquire(blocking=False):
                try:
                    if slot.mesh is not keep:
                        slot.close()
                finally:
                    slot.lock.release()

    @property
    def names(self) -> Sequence[str]:
        """The databases, in the order of the configuration."""
        return tuple(self._meshes)

    @property
    def silent(self) -> Mapping[str, AgentmeshError]:
        """The databases that did not answer when they were last asked, and why."""
        return {name: slot.failure for name, slot in self._meshes.items() if slot.failure is not None}

    def mesh(self, name: str) -> Mesh:
        """Return the mesh of one database, opened at the first call; raise ConfigError, or a DatabaseError."""
        settings = self.settings.of_database(name)
        slot = self._meshes[name]
        with slot.lock:
            if slot.mesh is None:
                if self._closed.is_set():
                    raise DatabaseError(f"The database {name} was not opened: this process is ending.")
                slot.mesh = self._open(settings)
                if self._closed.is_set():
                    slot.close()
                    raise DatabaseError(f"The database {name} was closed: this process is ending.")
                self._opened(slot.mesh)
            return slot.mesh

    def _open(self, settings: Settings) -> Mesh:
        try:
            return open_mesh(
                settings, role=self._role, what=self._what, environ=self._environ, pool_size=self._pool_size
            )
        except ConfigError as error:
            raise ConfigError(f"databases.{settings.database}: {error.message}", hint=error.hint) from None

    def ask(
        self, question: Callable[[Mesh], Answer], names: Collection[str] | None = None, *, patience: float = _PATIENCE
    ) -> DatabaseAnswers[Answer]:
        """Ask all databases (or these) at the same time; one that is slow or dead does not hold up the rest.

        A question only reads. ``patience``: seconds until a database must have let us in; then it has time to answer.
        If several names mean the same database, the first one counts. Errors other than those of a database are raised.
        """
        wanted = [name for name in self._meshes if names is None or name in names]
        now = time.monotonic()
        missing: dict[str, AgentmeshError] = {
            name: failure for name in wanted if (failure := self._meshes[name].recent_failure(now)) is not None
        }
        inbox: _Inbox[Answer] = SimpleQueue()
        asked = [name for name in wanted if name not in missing]
        for name in asked:
            threading.Thread(
                target=self._ask_one, args=(name, question, inbox), name=f"ask {name}", daemon=True
            ).start()
        replies: dict[str, _Reply[Answer]] = {}
        for name, reply in self._received(inbox, asked, now + patience):
            match reply:
                case DatabaseError():
                    missing[name] = self._meshes[name].failed(reply)
                case BaseException():
                    raise reply
                case _:
                    replies[name] = reply
                    self._meshes[name].failure = None
        for name in asked:
            if name not in replies and name not in missing:
                late = DatabaseUnreachable(f"The database {name} has not answered for {patience:g} s.")
                missing[name] = self._meshes[name].failed(late)
        return self._without_twins(replies, missing)

    def _ask_one(self, name: str, question: Callable[[Mesh], Answer], inbox: _Inbox[Answer]) -> None:
        try:
            mesh = self.mesh(name)
            identity = mesh.database.run(lineage.identity, idempotent=True)
            inbox.put((name, None))
            inbox.put((name, _Reply(identity, question(mesh))))
        except BaseException as error:  # noqa: BLE001  the asker raises it
            inbox.put((name, error))

    def _received(
        self, inbox: _Inbox[Answer], asked: Sequence[str], until: float
    ) -> Iterator[tuple[str, _Reply[Answer] | BaseException]]:
        """Yield replies until all are there.

        A database that lets nobody in until then is left behind, unless it is an embedded server, which may have to
        start.
        """
        waiting, answering = set(asked), set[str]()
        while waiting or answering:
            may_start = any(self.settings.of_database(name).database_url is None for name in waiting)
            patience = max(until - time.monotonic(), 0) if waiting and not may_start else _ANSWER
            try:
                name, reply = inbox.get(timeout=patience)
            except Empty:
                if not answering or not waiting or may_start:
                    return
                waiting.clear()
                continue
            if reply is None:
                if name in waiting:
                    waiting.discard(name)
                    answering.add(name)
                continue
            if name in waiting or name in answering:
                waiting.discard(name)
                answering.discard(name)
                yield name, reply

    def _without_twins(
        self, replies: Mapping[str, _Reply[Answer]], missing: dict[str, AgentmeshError]
    ) -> DatabaseAnswers[Answer]:
        given: dict[str, Answer] = {}
        names: dict[str, str] = {}
        for name in self._meshes:
            if name not in replies:
                continue
            identity, answer = replies[name]
            twin = names.setdefault(identity, name) if identity else name
            if twin == name:
                given[name] = answer
            else:
                missing[name] = same_database(twin, name)
        return DatabaseAnswers(given, missing)


def same_database(twin: str, name: str) -> ConfigError:
    """Return the error for a database that the configuration names twice."""
    return ConfigError(
        f"The databases {twin} and {name} are the same one, so {name} is left out.", hint="Name it once in [databases]."
    )


class _Reply(NamedTuple, Generic[Answer]):
    """The answer of one database."""

    identity: str
    """Says which database it is; empty if the server does not tell."""
    answer: Answer


_Inbox = SimpleQueue[tuple[str, _Reply[Answer] | BaseException | None]]
"""The reports of a question's threads: None as soon as a database has let one in, then its reply or an error."""


class _Slot:
    """The place of one database's mesh."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.mesh: Mesh | None = None
        self.failure: AgentmeshError | None = None
        """Why it did not answer when it was last asked."""
        self._failed_at = 0.0

    def failed(self, error: AgentmeshError) -> AgentmeshError:
        """Keep the failure for a while; return it."""
        self.failure, self._failed_at = error, time.monotonic()
        return error

    def recent_failure(self, now: float) -> AgentmeshError | None:
        """Return the failure if it is too recent to ask again."""
        return self.failure if self.failure and now - self._failed_at < _AGAIN else None

    def close(self) -> None:
        if self.mesh is not None:
            self.mesh.close()
            self.mesh = None
