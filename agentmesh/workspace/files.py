"""Where the workspaces of this process have their files, and which trees this process knows of them."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from agentmesh.config.schema import Workspace as Settings
from agentmesh.domain.errors import TreeError, TreeMoved
from agentmesh.domain.ids import SessionId
from agentmesh.domain.workspaces import Workspace, WorkspaceKind
from agentmesh.git.place import Place, own_place
from agentmesh.store import snapshots as rows
from agentmesh.store import workspaces
from agentmesh.store.tx import Database
from agentmesh.workspace.chains import Chain
from agentmesh.workspace.entries import entry, refs_of
from agentmesh.workspace.folders import Folders
from agentmesh.workspace.other_databases import OtherDatabases, no_other_databases
from agentmesh.workspace.roots import OwnTree, Root

if TYPE_CHECKING:
    from agentmesh.git.store import Store


class WorkspaceFiles:
    """The files of workspaces; for any thread."""

    def __init__(
        self, database: Database, data_dir: Path, settings: Settings | None = None, *, host: str, os_user: str
    ) -> None:
        self.database = database
        self.settings = settings or Settings()
        self.host = host
        self.os_user = os_user
        self.elsewhere: Callable[[], OtherDatabases] = no_other_databases
        """Asks the other databases of the mesh which workspaces they know."""
        self.folders = Folders(data_dir, max_file=self.settings.max_file, is_stored=self._is_stored)
        self._lock = threading.Lock()
        self._chains: defaultdict[UUID, Chain] = defaultdict(Chain)

    def place(self, root: Path) -> Place:
        """Return the repository of a directory of the user's; raise NoRepository."""
        return self.folders.place(root)

    def place_of(self, root: Root) -> Place:
        """Return the place of a workspace's files; raise NoRepository."""
        if root.own is None:
            return self.place(root.path)
        return own_place(self.place(root.own.project), self.folders.of(root.workspace))

    def root_of(self, row: Workspace) -> Root:
        """Return the root of a workspace whose directory is here; raise TreeError."""
        shared = row
        if row.kind != WorkspaceKind.SHARED:
            shared = self.database.run(workspaces.of_session, row.session_id, idempotent=True)
        return self.root_in(row, Path(str(shared.path)))

    def root_in(self, row: Workspace, project: Path) -> Root:
        """Return the same, where ``project`` is the session's directory."""
        self.require_here(row)
        if row.kind == WorkspaceKind.SHARED:
            return Root(row.id, project)
        if row.path is None:
            raise TreeError("The agent's own tree is not made yet.", hint="It is made when the agent runs.")
        user = self.place(project)
        mine = own_place(user, self.folders.of(row.id))
        return Root(row.id, Path(row.path), OwnTree(mine.top, Path(row.path), project, user.top, user.common_dir))

    def require_here(self, row: Workspace) -> None:
        """Raise TreeError if the directory of a workspace is on another host."""
        if row.path is not None and (row.host, row.os_user) != (self.host, self.os_user):
            raise TreeError(
                f"{row.path} is on {row.host} (user {row.os_user}), and this is {self.host} (user {self.os_user}).",
                hint="Start a worker there: agentmesh worker.",
            )

    def store(self, workspace: UUID, place: Place) -> Store:
        """Return the snapshots of a workspace whose files are at ``place``."""
        return self.folders.store(workspace, place)

    def chain(self, workspace: UUID) -> Chain:
        """Return the trees that a workspace had; hold its lock while you take a snapshot or write its files."""
        with self._lock:
            return self._chains[workspace]

    def forget(self, workspace: UUID) -> None:
        """Forget a workspace that was removed."""
        self.folders.forget(workspace)
        with self._lock:
            self._chains.pop(workspace, None)

    def note_repository(self, row: Workspace, place: Place) -> None:
        """Record, before the first snapshot of a shared directory, which repository will hold its refs.

        A process that deletes the session later finds them by this, even when the directory is gone.
        """
        if row.repository is None and row.kind == WorkspaceKind.SHARED:
            self.database.run(workspaces.note_repository, row.id, str(place.common_dir), idempotent=True)

    def give_up(self, store: Store, workspace: UUID, refs: Iterable[str]) -> None:
        """Remove refs that no row names. A row may have been stored although the answer to that was lost."""
        store.free([ref for ref in refs if not self._is_stored(workspace, ref)])

    def now(self, root: Root, session: SessionId) -> str:
        """Return the tree of a workspace as it is at this moment, for a fork or a merge; raise NoRepository.

        What changed since the newest snapshot becomes one, of nobody's work.
        """
        place = self.place_of(root)
        store, chain = self.store(root.workspace, place), self.chain(root.workspace)
        for again in (True, False):
            with chain.lock, store.held():
                row = self.database.run(workspaces.get, root.workspace, idempotent=True)
                self.note_repository(row, place)
                before = chain.at(row.head)
                found = store.take(before, None)
                if found.tree == before:
                    return found.tree
                chain.add(found.tree)
            ref = f"{refs_of(session)}{root.workspace}/{found.tree[:12]}"
            store.keep(ref, found.tree)
            kind = "outside" if before else "base"
            try:
                self.database.run(rows.record, root.workspace, kind, entry(found, ref), idempotent=True)
                break
            except TreeMoved:  # a snapshot of a call was stored meanwhile
                self.give_up(store, root.workspace, [ref])
                chain.forget()
                if not again:
                    raise
        return found.tree

    def _is_stored(self, workspace: UUID, ref: str) -> bool:
        """Return whether a snapshot of a workspace has this ref."""
        return self.database.run(rows.is_stored, workspace, ref, idempotent=True)
