"""The plan to undo some work: for each file, the tree that has it as it was before.

A file that somebody else has changed since is not put back: their work would be lost with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from agentmesh.domain.ids import AgentId
from agentmesh.domain.parts import WRITING
from agentmesh.domain.workspaces import Merge, Snapshot
from agentmesh.workspace.results import Later

_TAKEN_BACK = ("undo", "redo")


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """The files to put back, and the trees that have them."""

    sources: Mapping[str, str]
    """By path: the tree that has the file as it was."""
    later: tuple[Later, ...]
    """Files that somebody else has changed since; they are not among the sources."""
    merges: tuple[int, ...]
    """Merges whose files are all gone once everything is put back."""
    before: Mapping[str, str] = field(default_factory=dict)
    """By path: the tree that has a file of ``later`` as it was, for those that are so again."""
    upto: int = 0
    """The newest snapshot whose work is taken back."""
    by_command: frozenset[str] = frozenset()
    """Files that changed while a command ran: if others work there too, they may have changed them."""
    unknown: tuple[str, ...] = ()
    """The wanted files or folders in which the agent has changed nothing."""


def plan(
    snapshots: Iterable[Snapshot],
    merges: Mapping[int, Merge],
    agent: AgentId,
    changed: Callable[[str, str], Collection[str]],
    paths: Collection[str] | None = None,
) -> UndoPlan:
    """Plan how to undo the work of an agent in these snapshots, oldest first.

    Its work is: its calls, the merges that it asked for, a person's merges into its files, and what was undone or
    redone for it. ``changed`` returns the paths that differ between two trees. ``paths`` are files or folders; None
    is everything.
    """
    sources: dict[str, str] = {}
    later: dict[str, str] = {}
    undone: list[int] = []
    by_command: set[str] = set()
    upto = 0
    for one in snapshots:
        if one.before is None or one.before == one.tree:
            continue
        merge = merges.get(one.merge_id) if one.merge_id is not None else None
        touched = [path for path in changed(one.before, one.tree) if paths is None or _is_among(path, paths)]
        if _is_work_of(agent, one, merge, begun=bool(sources)):
            upto = one.id
            for path in touched:
                sources.setdefault(path, one.before)
            if one.kind == "call" and one.tool not in WRITING:
                by_command.update(touched)
            if merge is not None:
                undone.append(merge.id)
        else:
            later |= {path: one.name or "" for path in touched if path in sources}
    kept = {path: tree for path, tree in sources.items() if path not in later}
    refused = tuple(Later(path, by) for path, by in sorted(later.items()))
    unknown = tuple(one for one in paths or () if not any(_is_among(path, [one]) for path in sources))
    before = {path: sources[path] for path in later}
    return UndoPlan(kept, refused, tuple(undone) if paths is None else (), before, upto, frozenset(by_command), unknown)


def _is_work_of(agent: AgentId, snapshot: Snapshot, merge: Merge | None, *, begun: bool) -> bool:
    if snapshot.kind == "merge":
        return merge is not None and agent == (merge.by_agent or merge.target_agent)
    if snapshot.kind in _TAKEN_BACK:
        return begun and snapshot.agent_id == agent
    return snapshot.kind == "call" and snapshot.agent_id == agent


def _is_among(path: str, paths: Collection[str]) -> bool:
    return any(one in (".", path) or path.startswith(one.rstrip("/") + "/") for one in paths)
