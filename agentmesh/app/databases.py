"""The databases of a mesh that has several. Each session is wholly in one of them, and no verb reaches beyond it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from agentmesh.app.mesh import Mesh, no_session_hint
from agentmesh.app.meshes import Meshes
from agentmesh.app.whereabouts import Whereabouts
from agentmesh.domain.errors import (
    AgentmeshError,
    AmbiguousAgent,
    SessionMoved,
    UnknownAgent,
    UnknownSession,
    UsageError,
)
from agentmesh.domain.ids import beginning_with, full_id
from agentmesh.domain.text import one_line
from agentmesh.store import agents, moves, sessions

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmesh.domain.ids import SessionId
    from agentmesh.domain.rows import Session


class Databases(Meshes):
    """Finds the database that has a session or an agent, and draws one for a new session; thread-safe."""

    @cached_property
    def whereabouts(self) -> Whereabouts:
        """Where ids were last found."""
        return Whereabouts()

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
            f"there is no open session of {workdir.resolve()} in {self._asked()}",
            hint=no_session_hint(),
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
        """Return an error with the new place of a session that no database has; None if none knows it."""
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


def _copied(error: type[AgentmeshError], what: str, whole: str, names: Sequence[str]) -> AgentmeshError:
    """Return the error for an id that several databases have."""
    return error(
        f"the {what} {whole} is in the databases {' and '.join(names)}: one is a copy of the other",
        hint="--database NAME says which is meant. Take the copy out of [databases]: its agents would run too.",
    )


def _require_agent(mesh: Mesh, who: str) -> SessionId:
    found = mesh.database.run(agents.anywhere, who.strip(), idempotent=True)
    if not found:
        raise UnknownAgent(f"there is no agent {who}")
    return found[0][1]
