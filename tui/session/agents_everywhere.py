"""Reads the agents of all sessions, in all databases. A database that does not answer holds up no other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from agentmesh.domain.errors import AgentmeshError
from agentmesh.store import board as store
from agentmesh.tui.session.messages import DetailsRead, EverybodyRead

if TYPE_CHECKING:
    from textual.message import Message

    from agentmesh.app import Mesh
    from agentmesh.app.databases import Databases
    from agentmesh.domain.ids import AgentId
    from agentmesh.tui.session.state import Details

ToDetails = Callable[[store.Detail], "Details"]


class EverybodyReader:
    """Reads for one board. A single database is read at once, several on threads of their own."""

    def __init__(
        self, mesh: Mesh, databases: Databases | None, post: Callable[[Message], Any], to_details: ToDetails
    ) -> None:
        self._mesh, self._databases, self._post, self._to_details = mesh, databases, post, to_details
        self._lock = threading.Lock()
        self._asked: set[str] = set()
        """Databases that have still to answer."""
        self._read: dict[str, list[store.Elsewhere]] = {}
        self._missing: set[str] = set()

    def read(self, in_sight: Collection[AgentId]) -> None:
        """Read and post all, and the details of those agents ``in_sight`` that are in another database."""
        if self._databases is None:
            self._post(EverybodyRead(self._mesh.database.run(store.everywhere, idempotent=True)))
            return
        for name in self._databases.names:
            with self._lock:
                if name in self._asked:
                    continue
                self._asked.add(name)
            threading.Thread(
                target=self._ask, args=(self._databases, name, in_sight), name=f"board {name}", daemon=True
            ).start()

    def _ask(self, databases: Databases, name: str, in_sight: Collection[AgentId]) -> None:
        """Ask one database, and post all answers so far."""
        answer: tuple[list[store.Elsewhere], Mapping[AgentId, Details]] | None = None
        try:
            answer = databases.ask(lambda mesh: self._of(mesh, in_sight), [name]).given.get(name)
        except AgentmeshError:
            pass  # the board names the databases that are missing, and doctor says why
        finally:
            with self._lock:
                self._asked.discard(name)
                self._missing.discard(name)
                self._read.pop(name, None)
                if answer is None:
                    self._missing.add(name)
                else:
                    self._read[name] = [one._replace(database=name) for one in answer[0]]
                self._post(self._all(databases))
        if answer and answer[1]:
            self._post(DetailsRead(dict(answer[1]), None))

    def _of(self, mesh: Mesh, in_sight: Collection[AgentId]) -> tuple[list[store.Elsewhere], Mapping[AgentId, Details]]:
        run = mesh.database.run
        agents = run(store.everywhere, idempotent=True)
        here = {one.view.id for one in agents}.intersection(in_sight) if mesh is not self._mesh else set()
        found = run(store.details, here, idempotent=True) if here else []
        return agents, {one.id: self._to_details(one) for one in found}

    def _all(self, databases: Databases) -> EverybodyRead:
        """Return the agents read so far, in the order of the configuration; two names of one database count once."""
        agents = {one.view.id: one for name in reversed(databases.names) for one in reversed(self._read.get(name, []))}
        missing = tuple(name for name in databases.names if name in self._missing)
        return EverybodyRead(list(reversed(agents.values())), missing)
