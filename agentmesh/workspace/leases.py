"""Leases: in a shared directory, one agent at a time writes below the paths that its session names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmesh.domain.errors import LeaseHeld
from agentmesh.store import leases
from agentmesh.store.call import Lease
from agentmesh.workspace.roots import Root

if TYPE_CHECKING:
    from agentmesh.workspace.files import WorkspaceFiles


def require(workspaces: WorkspaceFiles, root: Root, lease: Lease, path: str) -> None:
    """Take the lease that a file needs, if it needs one; raise LeaseHeld if another agent has it."""
    if root.own is not None:
        return
    found = workspaces.database.run(leases.take, lease, path, idempotent=True)
    if found is not None and not found.mine:
        where = "this directory" if found.prefix == "." else f"{found.prefix}/"
        raise LeaseHeld(
            f"{found.name} writes in {where} until its turn ends; nothing was changed",
            hint=f"Wait for {found.name}, or send it what to change there.",
        )
