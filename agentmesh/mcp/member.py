"""An external agent, held by this process: it joins, beats, and joins again after an outage. Knows nothing of MCP.

It is registered like a worker that runs no agents (``store.external``). The listener's thread hears and joins, the
``heartbeat`` thread beats; all other threads may call ``act``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from agentmesh.app import Mesh
from agentmesh.domain.errors import (
    AgentBusy,
    AgentmeshError,
    DatabaseError,
    DatabaseUnreachable,
    DeadAgent,
    Fenced,
    SchemaReplaced,
    UnknownAgent,
    UnknownSession,
)
from agentmesh.domain.ids import AgentId, WorkerId, short
from agentmesh.domain.log import logger
from agentmesh.domain.rows import Session
from agentmesh.domain.states import PermissionMode
from agentmesh.store import external, schema, sessions, timers, workers
from agentmesh.store.call import Lease
from agentmesh.store.errors import translated
from agentmesh.store.listener import Listener
from agentmesh.store.status import agent_channel

LOG = logger(__name__)

Result = TypeVar("Result")

_Over = DeadAgent | UnknownSession | SchemaReplaced
"""Why the agent cannot be taken again."""

_BEAT = 2.0
_PATIENCE = 15.0
"""Seconds that a call waits for the agent to join again."""
_STOPPING = "the MCP server is stopping"
_OUTDATED = "Restart the MCP server once agentmesh is upgraded here too."
_TRIES = 5
"""Attempts to take an agent, in case other clients take the chosen one first."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The session to join or begin, as the command line names it."""

    workdir: Path
    """Working directory of a new session."""
    session: str | None = None
    """Join this session as a child of its root; None: begin one, as its root."""
    name: str = "mcp"
    """The child's name."""
    model: str | None = None
    mode: PermissionMode | None = None


class Member:
    """The external agent of this process. ``join`` opens everything; nothing is opened before."""

    def __init__(self, open_mesh: Callable[[], Mesh], wanted: Wanted) -> None:
        self._open_mesh = open_mesh
        self._wanted = wanted
        self._joining = threading.Lock()
        self._mesh: Mesh | None = None
        self._session: Session | None = None
        self._agent_id: AgentId | None = None
        self._listener: Listener | None = None
        self._worker_id: WorkerId | None = None
        self._lease: Lease | None = None
        self._over: _Over | None = None
        self._changed = threading.Condition()  # of _lease and _over
        self._chores: list[Callable[[], None]] = []
        self._watchers: dict[object, Callable[[], None]] = {}
        self._leaving = threading.Event()
        self._left = False
        self._beat: threading.Thread | None = None

    @property
    def mesh(self) -> Mesh:
        """The database and the rest of the mesh, once joined."""
        return _known(self._mesh)

    @property
    def session(self) -> Session:
        """The session that it belongs to, once joined."""
        return _known(self._session)

    @property
    def agent_id(self) -> AgentId:
        """Its id, once joined."""
        return _known(self._agent_id)

    @property
    def is_leaving(self) -> bool:
        """Whether ``leave`` was called: later failures are no news."""
        return self._leaving.is_set()

    def join(self) -> None:
        """Join, unless that is done; raise an AgentmeshError if it fails, and then it may be tried again.

        Once joined, raise UnknownSession if the session was deleted; SessionMoved, which is one, says where it is.
        Raise SchemaReplaced if the schema is no longer this program's.
        """
        if not self._join_first():
            self.mesh.database.run(self._require_schema, idempotent=True)
            self.mesh.database.run(sessions.require_still, self.session.id, idempotent=True)

    def _require_schema(self, connection: Any) -> None:
        """Raise SchemaReplaced if a newer program has upgraded the schema: its functions may mean something else."""
        if found := workers.replaced(connection, schema.needed()):
            raise schema.replaced(self.mesh.database.where, found, _OUTDATED)

    def _join_first(self) -> bool:
        """Join and return True, unless that is done."""
        with self._joining:
            if self._leaving.is_set():
                raise Fenced(_STOPPING)
            if self._beat is not None:
                return False
            if self._mesh is None:
                self._mesh = self._open_mesh()
            if self._session is None:
                self._session = self._find_session(self._mesh)
            self._listener = self._listen()
            self._beat = threading.Thread(target=self._beats, name="heartbeat", daemon=True)
            self._beat.start()
            LOG.info("joined session %s as agent %s", short(self._session.id), short(self.agent_id))
            return True

    def act(self, deed: Callable[[Lease], Result]) -> Result:
        """Return ``deed(lease)``; if the lease was lost (this process was frozen), join again and repeat."""
        lease = self._current_lease()
        try:
            return deed(lease)
        except Fenced:
            self._join_again(lease)
            return deed(self._current_lease())

    def watch(self, woken: Callable[[], None]) -> Callable[[], None]:
        """Call ``woken`` (on any thread, quick) when something may have changed; return a function that ends that."""
        key = object()
        self._watchers[key] = woken
        return lambda: self._watchers.pop(key, None) and None

    def with_each_beat(self, chore: Callable[[], None]) -> None:
        """Call ``chore`` on the heartbeat's thread, every few seconds while joined."""
        self._chores.append(chore)

    def ensure_served(self) -> str | None:
        """Make sure that a worker runs the session's agents; return a note if none can."""
        obstacle = self.mesh.ensure_served(self.session).obstacle
        if obstacle is None or obstacle.no_model is None:
            return None
        model = self.mesh.serving.root_model(self.session.root_id)
        if not self.mesh.models.can_use(model.partition("/")[0]):
            return (
                f"No worker runs this session's agents: its model {model} has no key here. "
                "Tell the user to start `agentmesh worker` where it has one."
            )
        return f"No worker runs its agents: {obstacle.no_model.message}. Tell the user: {obstacle.no_model.hint}"

    def leave(self) -> None:
        """Make the agent idle and close everything; idempotent."""
        self._leaving.set()
        with self._joining:
            self._set(lease=None)
            if self._beat is not None:
                self._beat.join(_PATIENCE)
            if self._listener is not None:
                self._listener.stop()  # first: it would join again
            if self._mesh is not None and not self._left:
                self._release(self._mesh)
                self._mesh.close()
                self._left = True

    def _release(self, mesh: Mesh) -> None:
        if self._worker_id is None:
            return
        try:
            mesh.database.run(workers.release, self._worker_id, idempotent=True)
        except DatabaseError as error:
            LOG.warning("could not say goodbye; others will notice: %s", error)

    # Joining

    def _find_session(self, mesh: Mesh) -> Session:
        if self._wanted.session is not None:
            return mesh.find_session(session=self._wanted.session, workdir=self._wanted.workdir)
        return mesh.start_session(
            self._wanted.workdir, model=self._wanted.model, title="MCP", mode=self._wanted.mode, external=True
        )

    def _listen(self) -> Listener:
        """Choose the agent, and join as it on a listener's connection."""
        for last in range(_TRIES - 1, -1, -1):
            self._agent_id = self._choose()
            listener = self.mesh.listener(self._heard, self._wake, self._sit)
            listener.listen(agent_channel(self._agent_id))
            try:
                listener.start()
            except AgentBusy:
                if self._wanted.session is None or not last:
                    raise
            else:
                return listener
        raise AssertionError("the last try returns or raises")

    def _choose(self) -> AgentId:
        if self._wanted.session is None:
            return self.session.root_id
        return self.mesh.database.run(external.guest, self.session.id, self._wanted.name)

    def _sit(self, connection: Any) -> None:
        """Take this process's lock, and the agent, first of all on a new LISTEN connection."""
        first = self._beat is None
        try:
            with translated(self.mesh.database.where):
                self._require_schema(connection)
                if self._worker_id is None or not workers.rejoin(connection, self._worker_id):
                    self._set(lease=None)
                    self._worker_id = workers.join(connection, self._identity())
                if self._lease is None:
                    self._set(lease=external.join(connection, self._worker_id, self.agent_id))
        except (DeadAgent, UnknownAgent, SchemaReplaced) as error:
            if first:
                raise
            self._set(over=error if isinstance(error, SchemaReplaced) else self._end(connection, error))

    def _end(self, connection: Any, error: AgentmeshError) -> DeadAgent | UnknownSession:
        """Return why the agent cannot be taken again: its session is gone, or it is dead."""
        try:
            with translated(self.mesh.database.where):
                sessions.require_still(connection, self.session.id)
        except UnknownSession as gone:
            return gone
        hint = "Its session has ended, or somebody killed it. Restart the MCP server to join again."
        return DeadAgent(error.message, hint=hint)

    def _identity(self) -> workers.Identity:
        place = self.mesh.place
        return workers.Identity(
            host=place.host,
            os_user=place.os_user,
            pid=os.getpid(),
            concurrency=1,
            providers=(),
            session=self.session.id,
        )

    def _set(self, *, lease: Lease | None = None, over: _Over | None = None) -> None:
        with self._changed:
            self._lease, self._over = lease, over or self._over
            self._changed.notify_all()
        if over:
            self._wake()

    def _current_lease(self) -> Lease:
        with self._changed:
            self._changed.wait_for(lambda: self._lease or self._over or self._leaving.is_set(), _PATIENCE)
            if self._leaving.is_set():
                raise Fenced(_STOPPING)
            if self._over:
                raise type(self._over)(self._over.message, hint=self._over.hint)
            if self._lease is None:
                raise _known(self._listener).failed or DatabaseUnreachable()
            return self._lease

    def _join_again(self, lost: Lease) -> None:
        """Make the listener join again, unless that has happened already."""
        with self._changed:
            if self._lease != lost:
                return
            self._lease = None
        _known(self._listener).reconnect()

    # The listener's thread, and the heartbeat's.

    def _heard(self, _channel: str, _payload: str) -> None:
        self._wake()

    def _wake(self) -> None:
        for woken in list(self._watchers.values()):
            woken()

    def _beats(self) -> None:
        while not self._leaving.wait(_BEAT):
            try:
                self._beat_once()
            except SchemaReplaced as error:
                self._set(over=error)
            except AgentmeshError as error:
                if not self._leaving.is_set():
                    LOG.warning("no heartbeat: %s", error)
            except Exception:
                LOG.exception("the heartbeat failed")

    def _beat_once(self) -> None:
        lease = self._lease
        if self._over or lease is None or self._worker_id is None:
            return
        self.mesh.database.run(self._require_schema, idempotent=True)
        for seen in self.mesh.database.run(workers.tick, self._worker_id, {lease.agent_id: lease.epoch}):
            if seen.what == "fenced":
                _known(self._listener).reconnect()  # which registers it again
            elif seen.what == "cron":
                self.mesh.database.run(timers.ring_crons, idempotent=True)
            elif seen.what == "lost":
                self._join_again(lease)
            elif seen.agent_id is not None:
                self._wake()
        for chore in self._chores:
            chore()


def _known(value: Result | None) -> Result:
    if value is None:
        raise ValueError("not joined")
    return value
