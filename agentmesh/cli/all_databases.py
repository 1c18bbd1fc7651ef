"""Ask all databases of the mesh at once, for a command."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from agentmesh.app import Mesh
from agentmesh.cli.place import PlaceOptions, complain_without

if TYPE_CHECKING:
    from agentmesh.app.databases import Databases

Answer = TypeVar("Answer")


class AllDatabases:
    """All databases of the mesh: several with names, or a single one whose name is empty."""

    def __init__(self, databases: Mesh | Databases) -> None:
        """``databases`` is a mesh if there is only one database."""
        self._databases = databases
        self._named: set[str] = set()

    @property
    def are_several(self) -> bool:
        """Whether the databases have names."""
        return not isinstance(self._databases, Mesh)

    def ask(self, question: Callable[[Mesh], Answer]) -> Mapping[str, Answer]:
        """Return the answer of each database; print a warning for each without one. Raise the error if none answers."""
        if isinstance(self._databases, Mesh):
            return {"": question(self._databases)}
        answers = self._databases.ask(question)
        given = answers.some()
        complain_without({name: why for name, why in answers.missing.items() if name not in self._named})
        self._named |= answers.missing.keys()
        return given

    def mesh(self, name: str) -> Mesh:
        """Return the mesh of a database that has answered."""
        return self._databases if isinstance(self._databases, Mesh) else self._databases.mesh(name)


@contextmanager
def all_databases(place: PlaceOptions, role: str) -> Iterator[AllDatabases]:
    """Open all databases of the mesh."""
    settings = place.settings()
    databases = place.databases(settings, role)
    if databases is None:
        with place.open(settings, role) as mesh:
            yield AllDatabases(mesh)
    else:
        with databases:
            yield AllDatabases(databases)
