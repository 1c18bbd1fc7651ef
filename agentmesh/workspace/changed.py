"""What agents changed in files, call by call, or all of it as one difference."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agentmesh.domain.changes import Change, lines_of_diff, remark
from agentmesh.domain.errors import NoRepository, TreeError
from agentmesh.domain.ids import AgentId
from agentmesh.domain.text import one_line, storable, visible
from agentmesh.git.facts import FileDiff
from agentmesh.store import changes as store
from agentmesh.store import snapshots

if TYPE_CHECKING:
    from agentmesh.git.place import Place
    from agentmesh.store.changes import FilesOf, Recorded
    from agentmesh.workspace.workspaces import Workspaces

_LOST = "\ufffd"
"""What stands in rows for a byte that is no UTF-8."""
_PATH = 400
"""How many characters of a path are shown."""
_GONE = "the text of this change is no longer kept"
_BINARY = "not text"
_CUT = "the rest is too long to show"


class Changed(NamedTuple):
    """What an agent and all below it changed, each change as it was made."""

    changes: Sequence[Change]
    """Oldest first."""
    is_cut: bool
    """Whether there are older ones too."""
    by_snapshots: bool
    """Whether snapshots are taken where the agent works, so that changes by commands are among them."""


class Net(NamedTuple):
    """All that was changed in the files where one agent works, as one difference."""

    before: str
    after: str
    files: Sequence[FileDiff]
    is_own: bool
    """Whether it is the agent's own tree; otherwise other agents may have changed the same files."""


def changed(workspaces: Workspaces, agent: AgentId, *, since: int | None = None, most: int = store.MOST) -> Changed:
    """Return the newest changes of an agent and of all below it, from snapshots where there are any.

    ``since``: only those after this row of the agent. Raise UnknownAgent, or BadArgument for a row that is not
    there.
    """
    run = workspaces.database.run
    files = _files_of(workspaces, agent, since)
    found = run(store.recorded, agent, most + 1, since, idempotent=True)
    typed = run(store.newest, agent, most + 1, since, idempotent=True)
    shown = sorted([*_with_text(workspaces, files, found), *typed], key=lambda one: one.at)
    return Changed(shown[-most:], len(shown) > most, by_snapshots=files.head is not None)


def net(workspaces: Workspaces, agent: AgentId, *, since: int | None = None) -> Net | None:
    """Return how the files of an agent's workspace differ from what they were; None if there are no snapshots.

    For an own tree that is what a merge would bring: all since it was made, or since its last merge. For a shared
    directory it has the files that the agent and those below it changed. ``since``: only what came after this row.
    Raise UnknownAgent, BadArgument for a row that is not there, NoRepository, TreeError.
    """
    from agentmesh.git import comparing

    run = workspaces.database.run
    files = _files_of(workspaces, agent, since)
    if files.head is None:
        return None
    is_own = files.kind == "own"
    recorded = [] if is_own else run(store.recorded, agent, store.MOST, since, idempotent=True)
    begun = recorded[0].before if recorded else files.head
    before = files.base if is_own else begun
    if since is not None and (then := run(snapshots.newest_before, agent, since, idempotent=True)):
        before = then.tree
    if before is None:
        return None
    paths = None if is_own else {one.path for one in recorded}
    place = place_of(workspaces, files)
    found = []
    if paths is None or paths:
        some = None if paths is None else _all_utf8(paths)
        found = comparing.diff(place, before, files.head, paths=some)
    if paths is not None:
        found = [one for one in found if storable(one.path) in paths]
    return Net(before, files.head, found, is_own)


def _files_of(workspaces: Workspaces, agent: AgentId, since: int | None) -> FilesOf:
    run = workspaces.database.run
    files: FilesOf = run(store.files_of, agent, idempotent=True)
    if since is not None:
        run(store.require_row, agent, since, idempotent=True)
    return files


def place_of(workspaces: Workspaces, files: FilesOf) -> Place:
    """Return the repository that has the trees; raise NoRepository."""
    if (files.host, files.os_user) != (workspaces.host, workspaces.os_user):
        raise NoRepository(
            f"the files are those of {files.os_user} on {files.host}, and this is {workspaces.os_user} on"
            f" {workspaces.host}",
            hint="Ask there. agentmesh sql has what changed: v_changes.",
        )
    return workspaces.place(Path(files.workdir))


def _with_text(workspaces: Workspaces, files: FilesOf, found: Sequence[Recorded]) -> list[Change]:
    """Return the recorded changes with their texts; where a text cannot be had, with the reason."""
    if not found:
        return []
    try:
        place = place_of(workspaces, files)
    except TreeError as error:
        return [_change(one, None, error.message) for one in found]
    steps: dict[tuple[str, str], list[Recorded]] = {}
    for one in found:
        steps.setdefault((one.before, one.tree), []).append(one)
    made = []
    for (before, tree), recorded in steps.items():
        texts, why = _texts(place, before, tree, [one.path for one in recorded])
        made += [_change(one, texts.get(one.path), why) for one in recorded]
    return made


def _texts(place: Place, before: str, tree: str, paths: Sequence[str]) -> tuple[Mapping[str, FileDiff], str]:
    """Return the differences of these files between two trees, by path, and why one may be missing."""
    from agentmesh.git import comparing

    try:
        return {storable(one.path): one for one in comparing.diff(place, before, tree, paths=_all_utf8(paths))}, _GONE
    except TreeError:
        return {}, _GONE


def _all_utf8(paths: Collection[str]) -> Collection[str] | None:
    """Return these paths of rows; None, which is all files, if one lacks bytes that are no UTF-8."""
    return None if any(_LOST in path for path in paths) else paths


def _change(one: Recorded, diff: FileDiff | None, why: str) -> Change:
    if diff is None:
        lines = remark(why)
    elif diff.binary:
        lines = remark(_BINARY)
    else:
        lines = [*lines_of_diff(storable(diff.text)), *(remark(_CUT) if diff.clipped else ())]
    return Change(
        one.agent_id,
        one.name,
        one.seq,
        one.tool,
        one_line(visible(one.path), _PATH),
        one.at,
        lines,
        is_new=one.status == "added",
        is_gone=one.status == "removed",
        counted=(one.added, one.removed),
    )
