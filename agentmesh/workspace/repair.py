"""Comparing rows and directories both ways, and mending what differs. Nothing is removed that is not ours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agentmesh.workspace.results import Finding, Mended

if TYPE_CHECKING:
    from agentmesh.workspace.workspaces import Workspaces


def look(workspaces: Workspaces) -> list[Finding]:
    """Return what is wrong with workspaces of this host and user; change nothing."""
    raise NotImplementedError


def mend(workspaces: Workspaces, findings: Iterable[Finding] | None = None) -> list[Mended]:
    """Do what each finding's remedy says, if it is still so; None means all that ``look`` finds."""
    raise NotImplementedError
