"""Deleting a session with its files: own trees and snapshots go with the rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from agentmesh.domain.errors import AgentmeshError
from agentmesh.domain.ids import SessionId
from agentmesh.domain.log import logger
from agentmesh.domain.workspaces import WorkspaceState
from agentmesh.store import sessions, snapshots
from agentmesh.store import workspaces as rows
from agentmesh.workspace.settling import settle

if TYPE_CHECKING:
    from agentmesh.workspace.files import WorkspaceFiles

LOG = logger(__name__)


class SessionFiles(NamedTuple):
    """What a session has outside the database, on this host."""

    refs: dict[str, list[str]]
    """Refs of its snapshots, by repository."""
    folders: list[UUID]
    """Its workspaces here: each may have a folder of ours, a shared one too if there are snapshots of it."""


def files_of(workspaces: WorkspaceFiles, session: SessionId) -> SessionFiles:
    """Return the files of a session, as its rows know them."""
    run = workspaces.database.run
    refs: dict[str, list[str]] = {}
    for one in run(snapshots.refs, session, idempotent=True):
        refs.setdefault(one.repository, []).append(one.ref)
    folders = [
        view.id
        for view in run(rows.listing, session, idempotent=True)
        if view.state is not WorkspaceState.REMOVED
        and (view.host, view.os_user) == (workspaces.host, workspaces.os_user)
    ]
    return SessionFiles(refs, folders)


def remove_files(workspaces: WorkspaceFiles, session: SessionId, files: SessionFiles) -> None:
    """Remove the own trees and the refs; log a failure instead of raising it."""
    try:
        for repository, refs in files.refs.items():
            _free(repository, refs)
        for workspace in files.folders:
            _remove(workspaces.folders.of(workspace))
    except (AgentmeshError, OSError) as error:
        LOG.warning("files of the deleted session %s are left: %s", session, error)


def delete_session(workspaces: WorkspaceFiles, session: SessionId) -> None:
    """Erase a session and all its rows, then its own trees and the refs of its snapshots; raise SessionRunning.

    What a crash leaves between is named by ``agentmesh workspaces --repair``.
    """
    files = files_of(workspaces, session)
    settle(workspaces, files.folders)
    workspaces.database.run(sessions.delete_session, session)
    remove_files(workspaces, session, files)


def _free(repository: str, refs: list[str]) -> None:
    from agentmesh.git.repository_refs import free_refs

    free_refs(Path(repository), refs)


def _remove(folder: Path) -> None:
    from agentmesh.git.trees import remove_tree

    if folder.exists() and not remove_tree(folder, folder.name, folder.parent):
        LOG.warning("%s has no marker of ours, so it is left", folder)
