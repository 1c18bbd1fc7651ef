"""The workspaces of one process: where its agents work, what is kept of their files, and what they get from each other.

``app`` makes one ``Workspaces``, the engine carries it, and commands use it too. Rows say what is true; the directories
and Git objects follow them. Which part does what:

- ``make``: the directory of an agent's own tree, before its first turn;
- ``snapshots``: what each call changed;
- ``merging``, ``conflicts``, ``leases``, ``undo``, ``sweep``, ``repair``: what follows from that.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from agentmesh.config.schema import Workspace as Settings
from agentmesh.domain.errors import NoRepository, TreeMoved
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.rows import Standing
from agentmesh.domain.workspaces import Workspace, WorkspaceKind
from agentmesh.git.place import Place, own_place
from agentmesh.store import snapshots as rows
from agentmesh.store import workspaces
from agentmesh.store.call import Lease
from agentmesh.store.tx import Database
from agentmesh.workspace import conflicts, leases, make
from agentmesh.workspace.chains import Chain
from agentmesh.workspace.folders import Folders
from agentmesh.workspace.roots import Root
from agentmesh.workspace.snapshots import StepSnapshots, entry, refs_of
from agentmesh.workspace.sweep import Sweeper

if TYPE_CHECKING:
    from agentmesh.git.store import Store


class Workspaces:
    """What a process does with workspaces; for any thread."""

    def __init__(
        self, database: Database, data_dir: Path, settings: Settings | None = None, *, host: str, os_user: str
    ) -> None:
        self.database = database
        self.settings = settings or Settings()
        self.host = host
        self.os_user = os_user
        self.folders = Folders(data_dir, max_file=self.settings.max_file)
        self._sweeper = Sweeper()
        self._lock = threading.Lock()
        self._chains: defaultdict[UUID, Chain] = defaultdict(Chain)

    # What the engine calls for every agent.

    def prepare(self, lease: Lease, standing: Standing) -> Root:
        """Return where an agent works; make its own tree first if it is only planned. Raise TreeError, in words.

        Its agent's thread calls this before the turn's first step. A crash in between leaves a row that is planned, and
        the next worker makes the tree again.
        """
        project = Path(standing.project)
        if standing.kind == WorkspaceKind.SHARED:
            return Root(standing.workspace_id, project)
        row = self.database.run(workspaces.get, standing.workspace_id, idempotent=True)
        return make.prepare(self, lease, row, project)

    def step(self, root: Root, session: SessionId, agent: AgentId, seq: int) -> StepSnapshots | None:
        """Return what takes the snapshots of a step; None if there is no repository or no snapshots are wanted."""
        if not self.settings.snapshots and root.own is None:
            return None
        try:
            return StepSnapshots(self, root, self.place_of(root), session, agent, seq)
        except NoRepository:
            return None

    def now(self, root: Root, session: SessionId) -> str:
        """Return the tree of a workspace as it is at this moment, for a fork or a merge; raise NoRepository.

        What changed since the newest snapshot becomes one, of nobody's work.
        """
        store, chain = self.store(root.workspace, self.place_of(root)), self.chain(root.workspace)
        for again in (True, False):
            head = self.database.run(workspaces.get, root.workspace, idempotent=True).head
            with chain.lock:
                before = chain.at(head)
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
                chain.forget()
                if not again:
                    raise
        return found.tree

    def base_for_fork(self, agent: AgentId) -> str | None:
        """Return the tree that a fork with its own tree begins with: what the agent's workspace has now.

        None if that tree is to be taken when it is made: the agent's own is not there yet. Raise NoRepository.
        """
        row = self.database.run(workspaces.of_agent, agent, idempotent=True)
        if row.path is None:
            return None
        root = self.root_of(row)
        try:
            place = self.place_of(root)
        except NoRepository as reason:
            if row.kind == WorkspaceKind.SHARED:
                self.database.run(workspaces.note_repository, row.id, None, reason.message, idempotent=True)
            raise
        if row.repository is None:
            self.database.run(workspaces.note_repository, row.id, str(place.common_dir), idempotent=True)
        return self.now(root, row.session_id)

    # What every other part of this package uses.

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
        make.require_here(self, row)
        return make.root_of(self, row, Path(str(shared.path)))

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

    # Hooks: the engine calls them; ``conflicts``, ``leases`` and ``sweep`` fill them.

    def stored(self, root: Root, agent: AgentId, paths: frozenset[str]) -> None:
        """Look for conflicts: the agent's call has changed these files, and its snapshot is stored."""
        if root.own is not None and paths:
            conflicts.look(self, root.workspace, agent, paths)

    def news(self, root: Root, agent: AgentId) -> str | None:
        """Return what the agent should be told with the first result of its step: new conflicts; each only once."""
        return conflicts.news(self, agent) if root.own is not None else None

    def require_lease(self, root: Root, lease: Lease, path: str) -> None:
        """Take the lease that a file of a shared directory needs; raise LeaseHeld if another agent has it.

        ``path`` is relative to the root. ``write`` and ``edit`` call this before they change anything.
        """
        leases.require(self, root, lease, path)

    def tick(self) -> None:
        """Do what is due: remove trees that nothing uses, finish merges whose worker died. A worker's tick calls it."""
        self._sweeper.tick(self)
