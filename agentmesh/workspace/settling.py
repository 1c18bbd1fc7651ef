"""Undos whose process died before their row was stored: their files are as if nobody had begun.

The next snapshot of the files puts them back first. These functions do it where nobody takes one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from uuid import UUID

from agentmesh.domain.errors import AgentmeshError, TreeBusy, UnknownWorkspace
from agentmesh.domain.log import logger
from agentmesh.git.unfinished import NOTE
from agentmesh.store import workspaces as rows
from agentmesh.workspace.folders import is_workspace_name
from agentmesh.workspace.opening import held

if TYPE_CHECKING:
    from agentmesh.workspace.files import WorkspaceFiles

LOG = logger(__name__)


def left(workspaces: WorkspaceFiles) -> list[UUID]:
    """Return the workspaces among whose files an undo is under way, or was cut short."""
    names = [note.parent.name for note in workspaces.folders.trees.glob(f"*/{NOTE}")]
    return [UUID(name) for name in names if is_workspace_name(name)]


def settle(workspaces: WorkspaceFiles, among: Iterable[UUID]) -> None:
    """Take back what undos that were cut short have written in these workspaces; log a failure."""
    for workspace in among:
        if not (workspaces.folders.of(workspace) / NOTE).exists():
            continue
        try:
            with held(workspaces, workspaces.database.run(rows.get, workspace, idempotent=True), wait=False) as store:
                store.settle()
        except (TreeBusy, UnknownWorkspace):
            continue  # somebody is at work on it, or it is another database's
        except AgentmeshError as error:
            LOG.warning("an undo in %s was cut short, and cannot be taken back: %s", workspace, error)
