"""The files of a workspace's row: their directory, their store of snapshots, and their tree right now."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING
from uuid import UUID

from agentmesh.domain.errors import TreeBusy, TreeError, TreeMoved
from agentmesh.domain.workspaces import Workspace, WorkspaceState
from agentmesh.store import snapshots
from agentmesh.store import workspaces as rows
from agentmesh.workspace.entries import entry, refs_of, take

if TYPE_CHECKING:
    from agentmesh.git.store import Store
    from agentmesh.workspace.files import WorkspaceFiles


def opened(workspaces: WorkspaceFiles, row: Workspace) -> Store:
    """Return the store of a workspace; raise NoRepository, or TreeError if its directory is not here."""
    root = workspaces.root_of(row)
    if not root.path.is_dir():
        raise TreeError(
            f"the directory {root.path} is gone", hint="Bring it back; agentmesh workspaces --repair says what is left."
        )
    return workspaces.store(row.id, workspaces.place_of(root))


def present(workspaces: WorkspaceFiles, row: Workspace) -> str | None:
    """Return the tree of a workspace as it is now; what had changed becomes a snapshot. None: it has no files at all.

    If its directory was removed, is being removed, or is not made yet, that is the newest snapshot.
    """
    if row.state is WorkspaceState.READY:
        try:
            opened(workspaces, row)
            return workspaces.now(workspaces.root_of(row), row.session_id)
        except (TreeError, TreeMoved):
            row = workspaces.database.run(rows.get, row.id, idempotent=True)
            if row.state is WorkspaceState.READY:
                raise
    return row.head or row.at_tree


@contextlib.contextmanager
def held(workspaces: WorkspaceFiles, row: Workspace, *, wait: bool = True) -> Iterator[Store]:
    """Let nobody else of ours look at a workspace's files, or write them, meanwhile; yield what takes its snapshots.

    Without ``wait`` raise TreeBusy at once if somebody does. The files of a directory are locked after the process's
    own record of its snapshots, as ``snapshots`` does it.
    """
    store = opened(workspaces, row)
    lock = workspaces.chain(row.id).lock
    if not lock.acquire(blocking=wait):
        raise TreeBusy(f"another thread works with the files of {row.path}", hint="Try again in a moment.")
    try:
        with store.held(wait=wait):
            yield store
    finally:
        lock.release()


def settled(workspaces: WorkspaceFiles, store: Store, workspace: UUID) -> str | None:
    """Return the newest snapshot of a workspace that the caller holds; what had changed since becomes one.

    None: not now, because a snapshot of this process is not stored yet, or another process has stored one meanwhile.
    """
    run, chain = workspaces.database.run, workspaces.chain(workspace)
    row = run(rows.get, workspace, idempotent=True)
    before = chain.at(row.head)
    if before != row.head:
        return None
    ref = f"{refs_of(row.session_id)}{workspace}/{uuid.uuid4().hex[:12]}"
    found = take(store, before, ref)
    if found is None:
        return before
    try:
        run(snapshots.record, workspace, "base" if before is None else "outside", entry(found, ref), idempotent=True)
    except TreeMoved:
        workspaces.give_up(store, workspace, [ref])
        return None
    chain.add(found.tree)
    return found.tree
