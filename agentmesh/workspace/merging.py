"""Merging the files of one workspace into another: all of them in one commit, or none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from agentmesh.domain.cancel import Cancel
from agentmesh.domain.ids import AgentId
from agentmesh.store.call import Lease
from agentmesh.workspace.results import Checked, MergeResult

if TYPE_CHECKING:
    from agentmesh.workspace.workspaces import Workspaces

Check = Callable[[Path, Cancel], Checked]
"""Runs a command in a directory with the result's files; ``agentmesh.tools.check.check`` makes one."""


def merge(
    workspaces: Workspaces,
    agent: AgentId,
    *,
    by: AgentId | None = None,
    lease: Lease | None = None,
    down: bool = False,
    check: Check | None = None,
    preview: bool = False,
    cancel: Cancel | None = None,
    progress: Callable[[str], None] = lambda _text: None,
) -> MergeResult:
    """Merge the files of an agent's own tree into the tree or directory that it was made from.

    ``by`` is the agent that asks, whose workspace gets the files; None is a person. ``down`` merges the other way
    round: the newest files of the workspace that the agent's tree was made from, into the agent's tree, with conflict
    markers. With a ``lease`` the result becomes that of its call. ``preview`` changes nothing and tells nobody.

    Raise UnknownAgent, NoRepository, TreeBusy, TreeError, or MergeRefused if there are no two trees to merge.
    """
    raise NotImplementedError
