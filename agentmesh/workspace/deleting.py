"""Deleting a session with its files: own trees and snapshots go with the rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agentmesh.domain.errors import AgentmeshError
from agentmesh.domain.ids import SessionId
from agentmesh.domain.log import logger
from agentmesh.domain.workspaces import WorkspaceState
from agentmesh.store import sessions, snapshots
from agentmesh.store import workspaces as rows

if TYPE_CHECKING:
    from agentmesh.workspace.files import WorkspaceFiles as Workspaces

LOG = logger(__name__)


def delete_session(workspaces: Workspaces, session: SessionId) -> None:
    """Erase a session and all its rows, then its own trees and the refs of its snapshots; raise SessionRunning.

    What a crash leaves between is named by ``agentmesh workspaces --repair``.
    """
    run = workspaces.database.run
    kept = run(snapshots.refs, session, idempotent=True)
    own = [
        view.id
        for view in run(rows.listing, session, own_only=True, idempotent=True)
        if view.state is not WorkspaceState.REMOVED
        and (view.host, view.os_user) == (workspaces.host, workspaces.os_user)
    ]
    run(sessions.delete_session, session)
    try:
        for repository in {one.repository for one in kept}:
            _free(repository, [one.ref for one in kept if one.repository == repository])
        for workspace in own:
            _remove(workspaces.folders.of(workspace))
    except (AgentmeshError, OSError) as error:
        LOG.warning("files of the deleted session %s are left: %s", session, error)


def _free(repository: str, refs: list[str]) -> None:
    from agentmesh.git.elsewhere import free_refs

    free_refs(Path(repository), refs)


def _remove(folder: Path) -> None:
    from agentmesh.git.trees import remove_tree

    if folder.exists() and not remove_tree(folder, folder.name, folder.parent):
        LOG.warning("%s has no marker of ours, so it is left", folder)
