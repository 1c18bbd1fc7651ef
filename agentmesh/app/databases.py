"""The databases of a mesh that has several. Each session is wholly in one of them, and no verb reaches beyond it."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Self, TypeVar

from agentmesh.app.mesh import Mesh, open_mesh
from agentmesh.app.whereabouts import Whereabouts
from agentmesh.config.settings import Settings
from agentmesh.domain.errors import (
    AgentmeshError,
    AmbiguousAgent,
    ConfigError,
    DatabaseError,
    DatabaseUnreachable,
    SessionMoved,
    UnknownAgent,
    UnknownSession,
    UsageError,
)
from agentmesh.domain.ids import beginning_with, full_id
from agentmesh.domain.text import one_line
from agentmesh.store import agents, lineage, moves, sessions

if TYPE_CHECKING:
    from agentmesh.domain.ids import SessionId
    from agentmesh.domain.rows import Session

Answer = TypeVar("Answer")

_PATIENCE: Final = 2.0
"""Seconds that all wait for the slowest database. The embedded server may take longer, because it may have to start."""
_ANSWER: Final = 90.0
"""Seconds that a database which has let us in may take to answer. Statements have shorter limits of their own."""
_AGAIN: Final = 10.0
"""Seconds before a database that did not answer is asked again."""


class Answers(NamedTuple, Generic[Answer]):
    """What databases have answered to a question, in the order of the configuration."""

    given: Mapping[str, Answer]
    missing: Mapping[str, AgentmeshError]
    """Why the others have not."""

    def some(self) -> Mapping[str, Answer]:
        """Return what was answered; raise the error of the first database if none has answered."""
        if not self.given:
            raise next(iter(self.missing.values()))
        return self.given


class Databases:
    """Opens a mesh for each database when it is wanted, and finds the one that has a session; thread-safe."""

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
        self.whereabouts = Whereabouts()

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
    ) -> Answers[Answer]:
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
    ) -> Answers[Answer]:
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
                missing[name] = ConfigError(
                    f"The databases {twin} and {name} are the same one, so {name} is left out.",
                    hint="Name it once in [databases].",
                )
        return Answers(given, missing)

    # Which database

    def for_new_session(self) -> Mesh:
        """Return the mesh of a database for a new session, drawn by weight from those that answer."""
        weights = {
            name: one.weight
            for name, one in self.settings.databases.items()
            if not (one.read_only or one.draining) and one.weight > 0
        }
        if not weights:
            raise UsageError(
                "No session can begin: each database is read-only, draining, or has the weight 0.",
                hint="Change [databases] in your configuration.",
            )
        failures: list[AgentmeshError] = []
        while weights:
            [name] = random.choices(list(weights), list(weights.values()))  # noqa: S311  spreads load
            answers = self.ask(lambda mesh: mesh, [name])
            if name in answers.given:
                return answers.given[name]
            failures += answers.missing.values()
            del weights[name]
        raise failures[0]

    def find(self, session: str | None, who: Sequence[str], workdir: Path) -> Mesh:
        """Return the mesh that has a session, named by its id or by default the newest of a directory.

        Without ``session``, an agent that is named by its id leads to its own session's database, as it leads to its
        session in a single one. Raise UnknownSession, or UnknownAgent.
        """
        if session is not None:
            return self.of_session(session)
        newest = self.newest(workdir)
        if newest and (not who or self._knows(*newest, who[0])):
            return newest[0]
        if who and (found := self.of_agent(who[0])):
            return found
        if newest:
            return newest[0]  # which says that it has no such agent
        raise UnknownSession(
            f"there is no session of {workdir.resolve()} in {self._asked()}",
            hint='Start one: agentmesh run "prompt". agentmesh sessions lists the others; --session names one.',
        )

    def newest(self, workdir: Path) -> tuple[Mesh, Session] | None:
        """Return the newest session of a directory in all databases that answer, and its mesh."""
        where = str(workdir.resolve())

        def newest_in(mesh: Mesh) -> tuple[Mesh, Session] | None:
            found = mesh.database.run(sessions.newest, where, mesh.place.host, mesh.place.os_user, idempotent=True)
            return (mesh, found) if found else None

        known = {name: found for name, found in self.ask(newest_in).some().items() if found}
        newest = max(known.values(), key=lambda found: found[1].created_at, default=None)
        names = [name for name, found in known.items() if newest and found[1].id == newest[1].id]
        if newest and len(names) > 1:
            raise _copied(UnknownSession, "session", str(newest[1].id), names)
        return newest

    def of_session(self, session: str) -> Mesh:
        """Return the mesh of the database that has the session whose id is this or begins with it.

        A whole id is looked for where it was last found. Raise UnknownSession.
        """
        whole = full_id(session)
        if whole and (found := self._remembered(str(whole), lambda mesh: mesh.database.run(sessions.resolve, session))):
            return found
        answers = self.ask(lambda mesh: (mesh, mesh.database.run(sessions.matching, session, idempotent=True))).some()
        matching = [(name, mesh, one) for name, (mesh, several) in answers.items() for one in several]
        if len(matching) > 1:
            if len({one.id for _, _, one in matching}) == 1:
                raise _copied(UnknownSession, "session", str(matching[0][2].id), [name for name, *_ in matching])
            raise UnknownSession(
                f"{one_line(session, 60)!r} fits more than one session",
                hint="Give more of the id: " + ", ".join(f"{one.id} ({name})" for name, _, one in matching[:5]),
            )
        if not matching:
            raise self._moved(session) or self._no_session(session, str(whole) if whole else None)
        name, mesh, found_session = matching[0]
        self.whereabouts.remember(str(found_session.id), name)
        return mesh

    def of_agent(self, who: str) -> Mesh | None:
        """Return the mesh of the database that has the agent whose id is this or begins with it; None if none has.

        Raise AmbiguousAgent if the beginning fits agents of several databases.
        """
        if beginning_with(who) is None:
            return None
        whole = full_id(who)
        if whole and (found := self._remembered(str(whole), lambda mesh: _require_agent(mesh, who))):
            return found
        answers = self.ask(lambda mesh: (mesh, mesh.database.run(agents.anywhere, who.strip(), idempotent=True))).some()
        having = [(name, mesh) for name, (mesh, several) in answers.items() if several]
        if len(having) > 1:
            names = [name for name, _ in having]
            fits = [(name, ref) for name in names for ref, _ in answers[name][1]]
            if len({ref.id for _, ref in fits}) == 1:
                raise _copied(AmbiguousAgent, "agent", str(fits[0][1].id), names)
            raise AmbiguousAgent(
                f"{one_line(who, 60)!r} fits agents of the databases {' and '.join(names)}",
                hint="Give more of the id: " + ", ".join(f"{ref.name} {ref.id} ({name})" for name, ref in fits[:5]),
            )
        if not having:
            return None
        name, mesh = having[0]
        if whole:
            self.whereabouts.remember(str(whole), name)
        return mesh

    def _remembered(self, whole: str, look: Callable[[Mesh], object]) -> Mesh | None:
        """Return the mesh where an id was last found, if it is still there."""
        name = self.whereabouts.of(whole)
        if name is None or name not in self._meshes:
            return None
        mesh = self.mesh(name)
        try:
            look(mesh)
        except (UnknownSession, UnknownAgent):
            return None  # it was moved, or erased
        return mesh

    @staticmethod
    def _knows(mesh: Mesh, session: Session, who: str) -> bool:
        try:
            mesh.database.run(agents.resolve, session.id, who, idempotent=True)
        except UnknownAgent:
            return False
        except AgentmeshError:
            return True  # that session has something to say about the name
        return True

    def _moved(self, session: str) -> SessionMoved | None:
        """Return the error that says where a session has gone that no database has; None if none knows it."""
        answers = self.ask(lambda mesh: mesh.database.run(moves.departed, session, idempotent=True)).given
        found = [(gone.departed_at, name, gone) for name, gone in answers.items() if gone and gone.departed_at]
        last = max(found, key=lambda one: one[0], default=None)
        if last is None:
            return None
        _, name, gone = last
        if gone.destination in answers:
            return SessionMoved(
                f"the session {gone.session_id} has left the database {name} for {gone.destination}, and is not there",
                hint="If its move was cut short: agentmesh sessions move --resume",
            )
        return SessionMoved(
            f"the session {gone.session_id} has moved from the database {name} to {gone.destination}, which"
            f" {'has not answered' if gone.destination in self._meshes else 'your configuration does not name'}"
        )

    def _no_session(self, session: str, whole: str | None) -> UnknownSession:
        name = self.whereabouts.of(whole) if whole else None
        if name is not None and name not in self._meshes:
            return UnknownSession(
                f"the session {one_line(session, 60)} is in the database {name}, which your configuration"
                " does not name",
                hint=f"Put [databases.{name}] back, or name it by --database-url.",
            )
        return UnknownSession(
            f"there is no session {one_line(session, 60)!r} in {self._asked()}",
            hint="agentmesh sessions lists them; give the id or 4 or more digits of it.",
        )

    def _asked(self) -> str:
        """Return ``the databases a and b; c has not answered``."""
        asked = " and ".join(name for name in self._meshes if name not in self.silent)
        silent = "".join(f"; {name} has not answered" for name in self.silent)
        return f"the databases {asked}{silent}"


class _Reply(NamedTuple, Generic[Answer]):
    """What one database has answered."""

    identity: str
    """Says which database it is; empty if the server does not tell."""
    answer: Answer


_Inbox = SimpleQueue[tuple[str, _Reply[Answer] | BaseException | None]]
"""What the threads of a question report: None as soon as a database has let them in, then its reply or an error."""


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


def _copied(error: type[AgentmeshError], what: str, whole: str, names: Sequence[str]) -> AgentmeshError:
    """Return what to say of an id that several databases have."""
    return error(
        f"the {what} {whole} is in the databases {' and '.join(names)}: one is a copy of the other",
        hint="--database NAME says which is meant. Take the copy out of [databases]: its agents would run too.",
    )


def _require_agent(mesh: Mesh, who: str) -> SessionId:
    found = mesh.database.run(agents.anywhere, who.strip(), idempotent=True)
    if not found:
        raise UnknownAgent(f"there is no agent {who}")
    return found[0][1]
