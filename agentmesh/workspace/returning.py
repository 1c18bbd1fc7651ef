"""Putting files of a workspace back to earlier content, while nobody else of ours looks at them or writes them."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from agentmesh.domain.errors import TreeBusy, TreeMoved
from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import Agent
from agentmesh.domain.workspaces import Snapshot, Workspace, WorkspaceKind
from agentmesh.git import facts
from agentmesh.store import agents, snapshots
from agentmesh.store import workspaces as rows
from agentmesh.workspace.applying import finish_into
from agentmesh.workspace.entries import entry, refs_of
from agentmesh.workspace.opening import held, settled
from agentmesh.workspace.results import Later, Undone, UndoStatus, plan_id
from agentmesh.workspace.undo_plan import UndoPlan

if TYPE_CHECKING:
    from agentmesh.git.store import Store
    from agentmesh.workspace.files import WorkspaceFiles

_TRIES: Final = 60
_PAUSE: Final = 0.05
_PAGE: Final = 1000


@dataclass(frozen=True, slots=True)
class Files:
    """A workspace's files, locked, whose present is a snapshot."""

    workspaces: WorkspaceFiles
    workspace: Workspace
    store: Store
    head: str
    """The tree of the files now."""

    @classmethod
    @contextlib.contextmanager
    def held(cls, workspaces: WorkspaceFiles, workspace: Workspace) -> Iterator[Files]:
        """Lock the files, finish a merge that was cut short, and record the files as they are now."""
        for _ in range(_TRIES):
            with held(workspaces, workspace) as store:
                finish_into(workspaces, store, workspace.id)
                head = settled(workspaces, store, workspace.id)
                if head is not None:
                    yield cls(workspaces, workspace, store, head)
                    return
            time.sleep(_PAUSE)  # until a snapshot that another thread has taken is stored
        raise TreeBusy(f"the files of {workspace.path} keep changing", hint="Try again when nobody works there.")

    def since(self, snapshot: int) -> Iterator[Snapshot]:
        """Yield the snapshots after one, oldest first."""
        while True:
            found = self.workspaces.database.run(snapshots.since, self.workspace.id, snapshot, _PAGE, idempotent=True)
            yield from found
            if len(found) < _PAGE:
                return
            snapshot = found[-1].id

    def changed(self, before: str, after: str) -> set[str]:
        """Return the paths that differ between two trees."""
        from agentmesh.git.comparing import changed_paths

        return changed_paths(self.store.place, before, after)

    def name_of(self, agent: AgentId) -> str:
        """Return an agent's name."""
        return self.workspaces.database.run(agents.get, agent, idempotent=True).name

    def reversed(self, one: Snapshot) -> UndoPlan:
        """Plan how to go back over one snapshot: each file as it was before, unless it was changed again."""
        assert one.before is not None  # noqa: S101  nothing is undone before there is a snapshot
        touched = self.changed(one.before, one.tree)
        later: dict[str, str] = {}
        for newer in self.since(one.id):
            if newer.before is not None and newer.before != newer.tree:
                later |= dict.fromkeys(touched & self.changed(newer.before, newer.tree), newer.name or "")
        again = self.changed(one.tree, self.head)
        refused = tuple(Later(path, by) for path, by in sorted(later.items()) if path in again)
        names = {each.path for each in refused}
        return UndoPlan(dict.fromkeys(touched - names, one.before), refused, (), upto=one.id)

    def put_back(
        self,
        agent: Agent,
        kind: str,
        plan: UndoPlan,
        said: str,
        *,
        preview: bool = False,
        agreed: str | None = None,
        row: int | None = None,
        undoes: Sequence[int] = (),
        redoes: Sequence[int] = (),
    ) -> Undone:
        """Write the files of a plan and record that; nothing if one of them was changed by somebody else since.

        ``agreed`` is the plan of a preview: nothing is written if it is another by now. ``row`` belongs to the plan.
        """
        from agentmesh.git.comparing import changes
        from agentmesh.git.mixed_trees import mixed

        plan = self._without_done(plan)
        tree = mixed(self.store.place, self.head, plan.sources)
        files = changes(self.store.place, self.head, tree)
        known = plan_id(plan.upto, row, sorted(plan.sources.items()), files, list(undoes), list(redoes))
        is_shared = self.workspace.kind is WorkspaceKind.SHARED
        unsure = tuple(one.path for one in files if is_shared and one.path in plan.by_command)
        done = Undone(UndoStatus.DONE, agent.name, files=files, by_command=unsure, plan=known)
        if plan.later:
            return replace(done, status=UndoStatus.REFUSED, refused=plan.later)
        if agreed not in (None, known):
            return replace(done, status=UndoStatus.PREVIEW)
        if tree == self.head and not undoes and not redoes:
            return replace(done, status=UndoStatus.NOTHING)
        if preview:
            return replace(done, status=UndoStatus.PREVIEW)
        ref = f"{refs_of(self.workspace.session_id)}{agent.id}/{kind}-{uuid.uuid4().hex[:12]}"
        with self.store.going_back(ref, tree, self.head) as restored:
            if not restored.refused:
                what = {"agent": agent.id, "said": said, "undoes": undoes, "redoes": redoes}
                self._record(kind, ref, tree, files, what)
                return done
        return replace(done, status=UndoStatus.REFUSED, refused=tuple(Later(path, "") for path in restored.refused))

    def _without_done(self, plan: UndoPlan) -> UndoPlan:
        """Leave out files that already have the wanted content, no matter who wrote it."""
        differs: dict[str, set[str]] = {}
        for tree in {*plan.sources.values(), *plan.before.values()}:
            differs[tree] = self.changed(tree, self.head)
        sources = {path: tree for path, tree in plan.sources.items() if path in differs[tree]}
        later = tuple(
            one for one in plan.later if one.path not in plan.before or one.path in differs[plan.before[one.path]]
        )
        return replace(plan, sources=sources, later=later)

    def _record(
        self, kind: str, ref: str, tree: str, files: Collection[facts.FileChange], what: Mapping[str, Any]
    ) -> None:
        """Store the snapshot of what was written, and of nothing else: what others save meanwhile is theirs.

        If another process has stored a snapshot meanwhile, it is of that one with these files.
        """
        from agentmesh.git.comparing import changes
        from agentmesh.git.mixed_trees import mixed

        run, place = self.workspaces.database.run, self.store.place
        newest = run(snapshots.newest, self.workspace.id, idempotent=True)
        left_out = tuple(newest.left_out) if newest else ()
        written, before = dict.fromkeys((one.path for one in files), tree), self.head
        for _ in range(_TRIES):
            taken = facts.TreeSnapshot(tree, before, changes(place, before, tree), left_out)
            try:
                run(snapshots.record, self.workspace.id, kind, entry(taken, ref), **what, idempotent=True)
            except TreeMoved:
                before = run(rows.get, self.workspace.id, idempotent=True).head or before
                tree = mixed(place, before, written)
                self.store.keep(ref, tree)
            else:
                self.workspaces.chain(self.workspace.id).add(tree)
                return
        raise TreeBusy(f"the files of {self.workspace.path} keep changing", hint="Look at them, then try again.")
