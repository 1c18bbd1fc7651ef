"""Conflicts seen while they grow: changes in two trees of one origin that do not fit.

After each snapshot, an own tree is merged in memory with each sibling's tree that changed one of the same files. So
the second writer hears of a conflict at its next step, and not at the merge.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final
from uuid import UUID

from agentmesh.domain.errors import AgentmeshError
from agentmesh.domain.figures import listed
from agentmesh.domain.ids import AgentId
from agentmesh.domain.log import logger
from agentmesh.domain.text import storable
from agentmesh.domain.workspaces import Conflict, Workspace
from agentmesh.store import conflicts as rows
from agentmesh.store import workspaces as workspace_rows

if TYPE_CHECKING:
    from agentmesh.git.place import Place
    from agentmesh.workspace.files import WorkspaceFiles

LOG = logger(__name__)
_MOST_PATHS: Final = 2000
_NAMED: Final = 10


def look(workspaces: WorkspaceFiles, workspace: UUID, agent: AgentId, paths: Collection[str]) -> None:
    """Compare an own tree with its siblings, after these files have changed. Never raise."""
    try:
        _look(workspaces, workspace, agent, paths)
    except AgentmeshError as error:
        LOG.warning("conflicts of workspace %s were not looked for: %s", workspace, error)


def _look(workspaces: WorkspaceFiles, workspace: UUID, agent: AgentId, paths: Collection[str]) -> None:
    run = workspaces.database.run
    some = sorted(paths)[:_MOST_PATHS]
    siblings = run(workspace_rows.siblings, workspace, some, idempotent=True)
    if not siblings:
        return
    mine = run(workspace_rows.get, workspace, idempotent=True)
    place = workspaces.place_of(workspaces.root_of(mine))
    for other in siblings:
        found = in_both(place, mine, other)
        run(rows.note, mine.id, other.id, found, agent, idempotent=True)


def in_both(place: Place, one: Workspace, other: Workspace) -> list[str]:
    """Return the files that two workspaces have changed since their bases in ways that do not fit."""
    from agentmesh.git.comparing import changed_paths
    from agentmesh.git.merging import conflicts, merge

    if not (one.base and one.head and other.base and other.head):
        return []
    theirs = other.head
    if one.base != other.base:  # bring the other one's changes to the same base first
        theirs = merge(place, other.base, one.base, other.head, markers=True).tree or other.head
    both = changed_paths(place, one.base, one.head) & changed_paths(place, other.base, other.head)
    if not both:
        return []
    return sorted(storable(each.path) for each in conflicts(place, one.base, one.head, theirs) if each.path in both)


def news(workspaces: WorkspaceFiles, agent: AgentId) -> str | None:
    """Return the words for an agent about new conflicts, each only once; None if there are none."""
    run = workspaces.database.run
    found = run(rows.untold, agent, idempotent=True)
    if not found:
        return None
    run(rows.told, [one.id for one in found], idempotent=True)
    return " ".join(_sentence(name, same) for name, same in _by_other(found).items())


def _by_other(found: Collection[Conflict]) -> dict[str, list[Conflict]]:
    grouped: dict[str, list[Conflict]] = {}
    for one in found:
        grouped.setdefault(one.other_name or "an agent that is gone", []).append(one)
    return grouped


def _sentence(name: str, found: Collection[Conflict]) -> str:
    paths = listed([one.path for one in found], _NAMED)
    return (
        f"{name} has changed the same places as you, in a tree of its own: {paths}. Only one "
        f"of you can be merged as it is: agree with {name} by `send`, or keep out of these places."
    )
