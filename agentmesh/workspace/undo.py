"""Taking back what an agent changed, in its files and in its conversation; and taking that back."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from agentmesh.domain.ids import AgentId
from agentmesh.workspace.results import Undone

if TYPE_CHECKING:
    from agentmesh.workspace.workspaces import Workspaces


def undo(
    workspaces: Workspaces,
    agent: AgentId,
    *,
    files: bool = True,
    conversation: bool = True,
    paths: Collection[str] | None = None,
    preview: bool = False,
) -> Undone:
    """Take back the newest turn of an idle agent: what it changed in files, and its rows.

    ``paths``: only these files, relative to the agent's directory. The present is a snapshot before, so ``redo`` brings
    it back. If somebody else has changed one of the files since, nothing is changed, and the result names them.
    ``preview`` only looks. Raise AgentBusy, UnknownAgent, NoRepository, TreeBusy or TreeError.
    """
    raise NotImplementedError


def rewind(
    workspaces: Workspaces,
    agent: AgentId,
    row: int,
    *,
    files: bool = True,
    conversation: bool = True,
    paths: Collection[str] | None = None,
    preview: bool = False,
) -> Undone:
    """Take back everything that an agent did after a row of its own; otherwise like ``undo``."""
    raise NotImplementedError


def redo(workspaces: Workspaces, agent: AgentId, *, files: bool = True, conversation: bool = True) -> Undone:
    """Take back the newest undo or rewind that was not taken back yet, unless the agent has worked since."""
    raise NotImplementedError
