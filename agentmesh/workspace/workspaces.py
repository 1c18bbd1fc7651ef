"""The workspaces of one process: where its agents work, what is kept of their files, and what they get from each other.

``app`` makes one ``Workspaces``, the engine carries it, and commands use it too. Rows say what is true; the directories
and Git objects follow them. Which part does what:

- ``make``: the directory of an agent's own tree, before its first turn;
- ``snapshots``: what each call changed;
- ``merging``, ``conflicts``, ``leases``, ``undo``, ``sweep``, ``repair``: what follows from that.
"""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from agentmesh.config.schema import Workspace as Settings
from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.rows import Standing
from agentmesh.git.place import Place
from agentmesh.git.store import Store
from agentmesh.store.call import Lease
from agentmesh.store.tx import Database
from agentmesh.workspace.folders import Folders
from agentmesh.workspace.roots import Root
from agentmesh.workspace.snapshots import StepSnapshots


class Workspaces:
    """What a process does with workspaces; for any thread."""

    def __init__(
        self, database: Database, data_dir: Path, settings: Settings = Settings(), *, host: str, os_user: str
    ) -> None:
        self.database = database
        self.settings = settings
        self.host = host
        self.os_user = os_user
        self.folders = Folders(data_dir, max_file=settings.max_file)

    # What the engine calls for every agent.

    def prepare(self, lease: Lease, standing: Standing) -> Root:
        """Return where an agent works; make its own tree first if it is only planned. Raise TreeError, in words.

        Its agent's thread calls this before the turn's first step. A crash in between leaves a row that is planned, and
        the next worker makes the tree again.
        """
        raise NotImplementedError(lease, standing)

    def step(self, root: Root, session: SessionId, agent: AgentId, seq: int) -> StepSnapshots | None:
        """Return what takes the snapshots of a step; None if there is no repository or no snapshots are wanted."""
        raise NotImplementedError(root, session, agent, seq)

    def now(self, root: Root) -> str | None:
        """Return the tree of a workspace as it is at this moment, for a fork; None without a repository.

        What changed since the newest snapshot becomes one, whose maker is not known.
        """
        raise NotImplementedError(root)

    # What every other part of this package uses.

    def place(self, root: Path) -> Place:
        """Return the repository of a directory; raise NoRepository."""
        return self.folders.place(root)

    def store(self, workspace: UUID, place: Place) -> Store:
        """Return the snapshots of a workspace whose files are at ``place``."""
        return self.folders.store(workspace, place)

    def moved(self, workspace: UUID, tree: str) -> None:
        """Note that a workspace's files are those of another tree now: after a merge or an undo by this process."""
        raise NotImplementedError(workspace, tree)

    # Hooks: the engine calls them; ``conflicts``, ``leases`` and ``sweep`` fill them.

    def stored(self, root: Root, agent: AgentId, paths: frozenset[str]) -> None:
        """Look for conflicts: the agent's call has changed these files, and its snapshot is stored."""

    def news(self, root: Root, agent: AgentId) -> str | None:
        """Return what the agent should be told with the first result of its step: new conflicts; each only once."""

    def require_lease(self, root: Root, lease: Lease, path: str) -> None:
        """Take the lease that a file of a shared directory needs; raise LeaseHeld if another agent has it.

        ``path`` is relative to the root. ``write`` and ``edit`` call this before they change anything.
        """

    def tick(self) -> None:
        """Do what is due: remove trees that nothing uses, finish merges whose worker died. A worker's tick calls it."""
