"""Making the directory of an agent's own tree: first the row, then a ref for the tree it is made from, then the files.

Whatever a crash leaves is found by the row and made again. What the tree is made from is settled by the ref: if the
files are there, they are of that tree.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from agentmesh.domain.errors import AgentmeshError, DatabaseError, Refused, TreeBusy, TreeError
from agentmesh.domain.workspaces import Workspace, WorkspaceState
from agentmesh.git.place import Place, own_place
from agentmesh.store import workspaces as rows
from agentmesh.store.call import Lease
from agentmesh.workspace.entries import refs_of
from agentmesh.workspace.files import WorkspaceFiles
from agentmesh.workspace.roots import Root

_PATIENCE = 60.0
"""Seconds until it gives up on another process that makes the same tree."""
_PAUSE = 0.05


def prepare(among: WorkspaceFiles, lease: Lease, row: Workspace, project: Path) -> Root:
    """Return where the lease's agent works; make its own tree if it is not there. Raise TreeError in words."""
    if row.state in (WorkspaceState.REMOVING, WorkspaceState.REMOVED):
        raise TreeError("The agent's own tree was removed.", hint="Fork a new agent; the snapshots are kept.")
    if row.path is not None:
        _restore(among, row, project)
        return among.root_in(row, project)
    try:
        return among.root_in(_make(among, lease, row, project), project)
    except (Refused, DatabaseError):
        raise
    except (AgentmeshError, OSError) as error:
        _fail(among, lease, error)


def _fail(among: WorkspaceFiles, lease: Lease, error: AgentmeshError | OSError) -> NoReturn:
    """Store why the tree cannot be made, and raise that as a TreeError."""
    words = error.message if isinstance(error, AgentmeshError) else (error.strerror or str(error))
    hint = error.hint if isinstance(error, AgentmeshError) else ""
    among.database.run(rows.failed, lease, words, idempotent=True)
    problem = f"The agent's own tree could not be made: {words}"
    raise TreeError(
        problem, hint=hint or "Send to the agent to try again, or fork without a tree of its own."
    ) from error


def _make(among: WorkspaceFiles, lease: Lease, row: Workspace, project: Path) -> Workspace:
    """Make the directory, and say so; return the row."""
    user, folder = among.place(project), among.folders.of(row.id)
    with _alone(folder):
        tree = _chosen(among, row, user)
        root = _files(among, row, user, tree)
    made = rows.Made(str(root), among.host, among.os_user, str(user.common_dir), tree, base_ref(row))
    return among.database.run(rows.ready, lease, made, idempotent=True)


def _chosen(among: WorkspaceFiles, row: Workspace, user: Place) -> str:
    """Return the tree to make the directory from, which its ref names from now on."""
    from agentmesh.git.trees import is_made

    folder, ref = among.folders.of(row.id), base_ref(row)
    store = among.store(row.id, own_place(user, folder))
    if (known := store.refs(refs_of(row.session_id)).get(ref)) and is_made(folder, str(row.id)):
        return known  # a worker died before it could say that it is ready
    source = among.database.run(rows.source, row.id, idempotent=True)
    origin, tree = source.origin, source.tree
    if not source.is_fixed and origin.state == WorkspaceState.READY and origin.path is not None:
        among.require_here(origin)
        tree = among.now(among.root_in(origin, user.root), origin.session_id) or tree
    if tree is None or not store.has(tree):
        raise TreeError("The files that it is to be made from are gone.", hint="Fork again, from a newer moment.")
    store.keep(ref, tree)
    return tree


def _files(among: WorkspaceFiles, row: Workspace, user: Place, tree: str) -> Path:
    from agentmesh.git.trees import make_tree

    settings = among.settings
    return make_tree(user, tree, among.folders.of(row.id), str(row.id), copy=settings.copy, link=settings.link)


def _restore(among: WorkspaceFiles, row: Workspace, project: Path) -> None:
    """Make a directory again that somebody has removed, with the files of its newest snapshot."""
    if row.path is not None and os.path.isdir(row.path):
        return
    if row.head is None:
        raise TreeError("The agent's own tree is gone, and no snapshot of it is known.")
    with _alone(among.folders.of(row.id)):
        _files(among, row, among.place(project), row.head)


def base_ref(row: Workspace) -> str:
    """Return the ref of the tree that an own workspace was made from."""
    return f"{refs_of(row.session_id)}{row.id}/base"


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes and threads from making the same tree; raise TreeBusy if one takes too long."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    deadline = time.monotonic() + _PATIENCE
    try:
        while True:
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TreeBusy(f"Another process works in {folder}.", hint="Try again in a moment.") from None
                time.sleep(_PAUSE)
        yield
    finally:
        os.close(opened)
