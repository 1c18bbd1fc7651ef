"""Regular upkeep of files.

Remove trees that nothing uses, finish merges that a dead process has left, free old snapshots and unused memory.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmesh.domain.errors import AgentmeshError, TreeBusy, TreeError, WorkspaceInUse
from agentmesh.domain.ids import SessionId
from agentmesh.domain.log import logger
from agentmesh.domain.workspaces import Kept, Workspace, WorkspaceState, WorkspaceView
from agentmesh.store import snapshots
from agentmesh.store import workspaces as rows
from agentmesh.workspace import checks
from agentmesh.workspace.applying import finish_left
from agentmesh.workspace.entries import entry, refs_of, take
from agentmesh.workspace.opening import held
from agentmesh.workspace.settling import left, settle

if TYPE_CHECKING:
    from agentmesh.workspace.files import WorkspaceFiles

LOG = logger(__name__)
_EVERY: Final = 10.0
_FREE_EVERY: Final = 6
"""Old snapshots are looked for at each sixth sweep."""
_UNUSED: Final = 60.0
"""Seconds. What a process knows of 10,000 files takes 5 MiB, and a worker may see many sessions."""


class Sweeper:
    """Sweeps every ten seconds, on a thread of its own: a tree may be large, and a heartbeat must not wait for it."""

    def __init__(self) -> None:
        self._next = 0.0
        self._count = 0
        self._running = threading.Lock()

    def tick(self, workspaces: WorkspaceFiles) -> None:
        """Begin a sweep if one is due and none is going on."""
        if time.monotonic() < self._next or not self._running.acquire(blocking=False):
            return
        self._next = time.monotonic() + _EVERY
        try:
            threading.Thread(target=self._run, args=(workspaces,), name="sweep", daemon=True).start()
        except RuntimeError as error:
            self._running.release()
            LOG.warning("own trees are looked after later: %s", error)

    def _run(self, workspaces: WorkspaceFiles) -> None:
        try:
            self._count += 1
            sweep(workspaces, frees=self._count % _FREE_EVERY == 1)
        except AgentmeshError as error:
            LOG.warning("own trees were not looked after: %s", error)
        except Exception:
            LOG.exception("the sweep failed")
        finally:
            self._running.release()


def sweep(workspaces: WorkspaceFiles, *, frees: bool = True) -> None:
    """Do all that is due."""
    workspaces.folders.rest(_UNUSED)
    finish_left(workspaces)
    for folder in checks.left(workspaces.folders.trees):
        checks.clear(folder)
    for row in workspaces.database.run(rows.unused, workspaces.host, workspaces.os_user, idempotent=True):
        remove(workspaces, row)
    if frees:
        settle(workspaces, left(workspaces))
        free(workspaces)


def remove(workspaces: WorkspaceFiles, row: Workspace) -> bool:
    """Remove the directory of an own workspace that nobody uses; return whether it is gone. Its snapshots stay.

    The last state of its files becomes a snapshot first. Then the row says that the directory goes, then it goes.
    """
    try:
        if row.state is WorkspaceState.READY:
            _keep_last(workspaces, row)
        workspaces.database.run(rows.removing, row.id, idempotent=True)
    except (WorkspaceInUse, TreeBusy):
        return False
    except AgentmeshError as error:
        LOG.warning("the tree %s is kept, because its files cannot be kept otherwise: %s", row.id, error)
        return False
    if not _remove_folder(workspaces, row):
        LOG.warning("the tree %s cannot be removed: it has no marker of ours, or is in use", row.id)
        return False
    workspaces.database.run(rows.removed, row.id, idempotent=True)
    workspaces.forget(row.id)
    return True


def free(workspaces: WorkspaceFiles) -> int:
    """Give up snapshots beyond the newest of each workspace, and the merged ones of reaped agents; return how many."""
    count = 0
    reaped: set[SessionId] = set()
    for view in workspaces.database.run(rows.listing, None, idempotent=True):
        if (view.host, view.os_user) != (workspaces.host, workspaces.os_user):
            continue
        try:
            count += _free_of(workspaces, view, reaped)
        except TreeError as error:  # one that is gone must not keep the snapshots of others
            LOG.warning("old snapshots of %s are not freed: %s", view.path or view.id, error)
    return count


def _free_of(workspaces: WorkspaceFiles, view: WorkspaceView, reaped: set[SessionId]) -> int:
    run, keep, count = workspaces.database.run, workspaces.settings.keep, 0
    if view.state is WorkspaceState.REMOVED and view.snapshots and view.session_id not in reaped:
        reaped.add(view.session_id)
        count += _give_up(workspaces, run(snapshots.refs, view.session_id, reaped_only=True, idempotent=True))
    if view.snapshots <= keep:
        return count
    return count + _give_up(workspaces, run(snapshots.over, view.id, keep, idempotent=True))


def _give_up(workspaces: WorkspaceFiles, found: Sequence[Kept]) -> int:
    """Remove the refs of snapshots, after their rows say so; raise TreeError before that if they cannot be reached."""
    from agentmesh.git.repository_refs import free_refs, require_openable

    repositories = {one.repository for one in found}
    for repository in repositories:
        require_openable(Path(repository))
    if found:
        workspaces.database.run(snapshots.freed, [one.snapshot_id for one in found], idempotent=True)
    for repository in repositories:
        free_refs(Path(repository), [one.ref for one in found if one.repository == repository])
    return len(found)


def _keep_last(workspaces: WorkspaceFiles, row: Workspace) -> None:
    """Make the present files a snapshot, if they are there and differ from the newest one."""
    if row.path is None or not Path(row.path).is_dir():
        return
    with held(workspaces, row, wait=False) as store:
        ref = f"{refs_of(row.session_id)}{row.id}/final"
        found = take(store, row.head, ref)
        if found is not None:
            workspaces.database.run(snapshots.record, row.id, "final", entry(found, ref), idempotent=True)
            workspaces.chain(row.id).add(found.tree)


def _remove_folder(workspaces: WorkspaceFiles, row: Workspace) -> bool:
    from agentmesh.git.trees import remove_tree

    folder = workspaces.folders.of(row.id)
    if not folder.exists() and not folder.is_symlink():
        return True
    return remove_tree(folder, str(row.id), workspaces.folders.trees)
