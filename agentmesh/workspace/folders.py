"""Where this process keeps the files of workspaces, and in which repository each directory is."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from agentmesh.domain.errors import NoRepository
from agentmesh.git import place as places
from agentmesh.git.place import Place

if TYPE_CHECKING:
    from agentmesh.git.store import Store

TREES = "trees"


class Folders:
    """Directories and snapshot stores of workspaces; for any thread. Knows what it has found for the process's life."""

    def __init__(self, data_dir: Path, *, max_file: int, is_stored: Callable[[UUID, str], bool]) -> None:
        """``is_stored`` says whether a row of a workspace names a ref; see ``Store``."""
        self.trees = data_dir / TREES
        """Holds one folder per workspace."""
        self._max_file = max_file
        self._is_stored = is_stored
        self._lock = threading.Lock()
        self._places: dict[Path, Place | NoRepository] = {}
        self._stores: dict[UUID, Store] = {}

    def of(self, workspace: UUID) -> Path:
        """Return the folder of a workspace, which need not exist."""
        return self.trees / str(workspace)

    def place(self, root: Path) -> Place:
        """Return the repository of a directory; raise NoRepository.

        A directory without one is looked up again only if it has a ``.git`` of its own by now.
        """
        known = self._places.get(root)
        if isinstance(known, Place):
            return known
        if known is not None and not os.path.lexists(root / ".git"):
            raise NoRepository(known.message, hint=known.hint)
        try:
            found = self._usable(root)
        except NoRepository as reason:
            self._places[root] = reason
            raise
        self._places[root] = found
        return found

    def store(self, workspace: UUID, place: Place) -> Store:
        """Return the store of a workspace whose files are at ``place``; it takes the snapshots."""
        from agentmesh.git.store import Store  # it imports pygit2, which sessions without a repository never need

        # Critical section: one store for each workspace, because it knows what it has looked at.
        with self._lock:
            known = self._stores.get(workspace)
            if known is None or known.place != place:
                is_stored = partial(self._is_stored, workspace)
                known = Store(place, self.of(workspace), max_file=self._max_file, is_stored=is_stored)
                self._stores[workspace] = known
            return known

    def forget(self, workspace: UUID) -> None:
        """Forget a workspace that was removed."""
        with self._lock:
            self._stores.pop(workspace, None)

    def rest(self, seconds: float) -> None:
        """Let the stores that nobody has used for so long give back their memory."""
        with self._lock:
            stores = tuple(self._stores.values())
        for store in stores:
            store.rest(seconds)

    def _usable(self, root: Path) -> Place:
        found = places.find(root)
        if self.trees.is_relative_to(found.top):
            raise NoRepository(
                f"agentmesh keeps its data in the repository itself, in {self.trees.parent}",
                hint="Choose another folder with AGENTMESH_DATA_DIR.",
            )
        return found


def is_workspace_name(name: str) -> bool:
    """Return whether a folder's name is one that agentmesh gives to the folder of a workspace."""
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False
