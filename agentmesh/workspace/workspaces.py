"""The workspaces of one process: where its agents work, what is kept of their files, and what they get from each other.

``app`` makes one ``Workspaces``, the engine carries it, and commands use it too. Rows say what is true; the directories
and Git objects follow them. Which part does what:

- ``make``: the directory of an agent's own tree, before its first turn;
- ``snapshots``: what each call changed;
- ``merging``, ``conflicts``, ``leases``, ``undo``, ``sweep``, ``repair``: what follows from that.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from agentmesh.domain.errors import NoRepository
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.rows import Standing
from agentmesh.domain.workspaces import WorkspaceKind
from agentmesh.store import workspaces
from agentmesh.store.call import Lease
from agentmesh.workspace import conflicts, leases, make
from agentmesh.workspace.files import WorkspaceFiles
from agentmesh.workspace.roots import Root
from agentmesh.workspace.snapshots import StepSnapshots
from agentmesh.workspace.sweep import Sweeper


class Workspaces(WorkspaceFiles):
    """What a process does with workspaces; for any thread."""

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
        """Return the recorder of a step's snapshots; None if there is no repository or no snapshots are wanted."""
        if not self.settings.snapshots and root.own is None:
            return None
        try:
            return StepSnapshots(self, root, self.place_of(root), session, agent, seq)
        except NoRepository:
            return None

    def base_for_fork(self, agent: AgentId) -> str | None:
        """Return the tree that a fork with its own tree begins with: what the agent's workspace has now.

        None if that tree is to be taken when it is made: the agent's own is not there yet. Raise NoRepository.
        """
        row = self.database.run(workspaces.of_agent, agent, idempotent=True)
        if row.path is None:
            return None
        root = self.root_of(row)
        try:
            return self.now(root, row.session_id)
        except NoRepository as reason:
            if row.kind == WorkspaceKind.SHARED:
                self.database.run(workspaces.note_repository, row.id, None, reason.message, idempotent=True)
            raise

    # Hooks: the engine calls them; ``conflicts``, ``leases`` and ``sweep`` fill them.

    def stored(self, root: Root, agent: AgentId, paths: frozenset[str]) -> None:
        """Look for conflicts: the agent's call has changed these files, and its snapshot is stored."""
        if root.own is not None and paths:
            conflicts.look(self, root.workspace, agent, paths)

    def news(self, root: Root, agent: AgentId) -> str | None:
        """Return the words about new conflicts, to be told with the first result of a step; each only once."""
        return conflicts.news(self, agent) if root.own is not None else None

    def require_lease(self, root: Root, lease: Lease, path: str) -> None:
        """Take the lease that a file of a shared directory needs; raise LeaseHeld if another agent has it.

        ``path`` is relative to the root. ``write`` and ``edit`` call this before they change anything.
        """
        leases.require(self, root, lease, path)

    def tick(self) -> None:
        """Do what is due: remove trees that nothing uses, finish merges whose worker died. A worker's tick calls it."""
        self._sweeper.tick(self)

    @cached_property
    def _sweeper(self) -> Sweeper:
        return Sweeper()
