"""The origin of each line of a file: which agent wrote it, and at which step."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from agentmesh.domain.ids import AgentId
from agentmesh.domain.text import storable
from agentmesh.store import changes as store

if TYPE_CHECKING:
    from agentmesh.git.place import Place
    from agentmesh.store.changes import Version
    from agentmesh.workspace.workspaces import Workspaces

_DEEP = 8
"""Merges of merges that are followed."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file, and its origin. Its text is foreign."""

    text: str
    by: Version | None = None
    """The snapshot that has it first; None if the line is older than all snapshots."""

    @property
    def agent_id(self) -> AgentId | None:
        """The agent that wrote the line; None if no agent of the session did."""
        return self.by.agent_id if self.by else None

    @property
    def at(self) -> datetime | None:
        """When the snapshot was taken."""
        return self.by.at if self.by else None


def blame(workspaces: Workspaces, agent: AgentId, path: str) -> list[Line]:
    """Return the lines of a file where an agent works, as its newest snapshot has it; empty without such a text file.

    ``path`` is relative to the workspace's directory. A line that came by a merge is traced to the agent that wrote
    it. Raise UnknownAgent, NoRepository, TreeError.
    """
    from agentmesh.workspace.changed import place_of

    files = workspaces.database.run(store.files_of, agent, idempotent=True)
    if files.head is None:
        return []
    return _lines(workspaces, place_of(workspaces, files), files.id, path, None, _DEEP)


def _lines(workspaces: Workspaces, place: Place, of: UUID, path: str, upto: int | None, deep: int) -> list[Line]:
    from agentmesh.git import blaming

    found = workspaces.database.run(store.versions, of, storable(path), upto, idempotent=True)
    versions = {str(one.id): one for one in found}
    returning = {str(one.id) for one in found if one.kind in ("undo", "redo")}
    blamed = blaming.blame(place, [(str(one.id), one.tree) for one in found], path, returning)
    lines = [Line(one.text, versions.get(one.label or "")) for one in blamed]
    for merge in {one.by for one in lines if one.by and one.by.source and one.by.kind == "merge"}:
        if deep and merge.source:
            theirs = _lines(workspaces, place, merge.source, path, merge.source_upto, deep - 1)
            lines = _followed(lines, merge, theirs)
    return lines


def _followed(lines: Sequence[Line], merge: Version, theirs: Sequence[Line]) -> list[Line]:
    """Return the lines; each line of this merge now has the snapshot that brought it to the merge's source."""
    matcher = difflib.SequenceMatcher(None, [one.text for one in lines], [one.text for one in theirs], autojunk=False)
    followed = list(lines)
    for ours, other, size in matcher.get_matching_blocks():
        for n in range(size):
            if lines[ours + n].by == merge and (by := theirs[other + n].by):
                followed[ours + n] = replace(lines[ours + n], by=by)
    return followed
