"""How ``repair`` checks rows, folders and refs, and the remedies for the faults that it finds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from agentmesh.domain.errors import NoRepository
from agentmesh.domain.ids import SessionId
from agentmesh.domain.workspaces import Kept, Workspace, WorkspaceKind, WorkspaceState, WorkspaceView
from agentmesh.store import agents, merges, snapshots, travel
from agentmesh.store import workspaces as rows
from agentmesh.workspace.entries import refs_of
from agentmesh.workspace.folders import is_workspace_name
from agentmesh.workspace.other_databases import no_other_databases
from agentmesh.workspace.results import Fault, TreeFinding
from agentmesh.workspace.settling import left

if TYPE_CHECKING:
    from agentmesh.workspace.files import WorkspaceFiles

_LATE: Final = timedelta(hours=1)
_MAKE: Final = "makes it again, with the files of its newest snapshot"


class _SessionRepository(NamedTuple):
    """The repository of a session's directory, and whether somebody works in it."""

    id: SessionId
    repository: Path
    busy: bool


def of_rows(workspaces: WorkspaceFiles) -> Iterator[TreeFinding]:
    """Yield the faults in the rows of this host."""
    now = workspaces.database.run(travel.now, idempotent=True)
    for view in workspaces.database.run(rows.listing, None, idempotent=True):
        if view.state is WorkspaceState.REMOVED or not _is_here(workspaces, view):
            continue
        row = workspaces.database.run(rows.get, view.id, idempotent=True)
        if view.kind is WorkspaceKind.SHARED:
            yield from _of_shared(workspaces, row)
        else:
            yield from _of_own(workspaces, row, view, now)


def of_folders(workspaces: WorkspaceFiles) -> Iterator[TreeFinding]:
    """Yield folders among ours that no row of any database knows; none if a database does not answer."""
    trees = workspaces.folders.trees
    known = {str(view.id) for view in workspaces.database.run(rows.listing, None, idempotent=True)}
    folders = [folder for folder in sorted(trees.iterdir()) if folder.is_dir()] if trees.is_dir() else []
    strange = [folder for folder in folders if is_workspace_name(folder.name) and folder.name not in known]
    elsewhere = workspaces.elsewhere() if strange else no_other_databases()
    where = f" --database {elsewhere.here}" if elsewhere.here else ""
    for folder in strange:
        if not elsewhere.silent and UUID(folder.name) not in elsewhere.known:
            yield TreeFinding(
                Fault.NO_ROW,
                folder.name,
                f"{folder} belongs to no workspace in this database.",
                "",
                f"If no other database keeps its trees there: agentmesh workspaces remove {folder.name}{where}.",
            )


def of_refs(workspaces: WorkspaceFiles) -> Iterator[TreeFinding]:
    """Yield refs without rows, and rows whose trees are gone; sessions in which an agent works are left out."""
    from agentmesh.git.repository_refs import has_tree, is_there, refs_below

    run = workspaces.database.run
    for session in _sessions(workspaces):
        if session.busy or not is_there(session.repository):
            continue
        kept = {one.ref: one for one in run(snapshots.refs, session.id, idempotent=True)}
        there = refs_below(session.repository, refs_of(session.id))
        for ref in sorted(there.keys() - kept.keys()):
            yield TreeFinding(
                Fault.STRAY_REF, f"{session.repository}:{ref}", f"{ref} belongs to no snapshot.", "removes the ref"
            )
        for ref in sorted(kept.keys() - there.keys()):
            lost = run(snapshots.get, kept[ref].snapshot_id, idempotent=True)
            if lost is not None and not has_tree(session.repository, lost.tree):
                yield _lost(kept[ref])


def make_again(workspaces: WorkspaceFiles, subject: str) -> str:
    """Make the directory of an own workspace again."""
    from agentmesh.git.trees import make_tree

    row = workspaces.database.run(rows.get, UUID(subject), idempotent=True)
    shared = workspaces.database.run(rows.of_session, row.session_id, idempotent=True)
    place, folder = workspaces.place(Path(str(shared.path))), workspaces.folders.of(row.id)
    settings = workspaces.settings
    make_tree(place, str(row.head), folder, str(row.id), copy=settings.copy, link=settings.link)
    return f"{row.path} is there again."


def mark_again(workspaces: WorkspaceFiles, subject: str) -> str:
    """Write the marker beside a tree again; the row says that the folder is ours."""
    from agentmesh.git import marker

    row = workspaces.database.run(rows.get, UUID(subject), idempotent=True)
    shared = workspaces.database.run(rows.of_session, row.session_id, idempotent=True)
    settings = workspaces.settings
    beside = (*settings.copy, *settings.link)
    marker.write(workspaces.folders.of(row.id), str(row.id), workspaces.place(Path(str(shared.path))), beside)
    return "It has its marker again."


def note_moved(workspaces: WorkspaceFiles, subject: str) -> str:
    """Store where the repository of a workspace is now."""
    row = workspaces.database.run(rows.get, UUID(subject), idempotent=True)
    shared = workspaces.database.run(rows.of_session, row.session_id, idempotent=True)
    common = str(workspaces.place(Path(str(shared.path))).common_dir)
    workspaces.database.run(rows.moved, row.id, str(row.path), common, idempotent=True)
    return f"Its row names {common} now."


def note_freed(workspaces: WorkspaceFiles, subject: str) -> str:
    """Store that a snapshot's tree is gone."""
    workspaces.database.run(snapshots.freed, [int(subject)], idempotent=True)
    return "Its row says so now."


def free_ref(_workspaces: WorkspaceFiles, subject: str) -> str:
    """Remove a ref of ours that no row names."""
    from agentmesh.git.repository_refs import free_refs

    repository, _, ref = subject.rpartition(":")
    free_refs(Path(repository), [ref])
    return "It is removed."


def _of_shared(workspaces: WorkspaceFiles, row: Workspace) -> Iterator[TreeFinding]:
    from agentmesh.git.repository_refs import is_there

    if row.repository is not None and not is_there(Path(row.repository)):
        yield _moved(workspaces, row, row)


def _of_own(workspaces: WorkspaceFiles, row: Workspace, view: WorkspaceView, now: datetime) -> Iterator[TreeFinding]:
    if not view.agents:
        yield TreeFinding(Fault.LEFT, str(row.id), f"Nobody uses the tree {row.id} any more.", "removes its directory")
        return
    if row.state is WorkspaceState.PLANNED and now - view.created_at > _LATE:
        planned = f"{view.created_at.astimezone():%Y-%m-%d %H:%M}"
        words = f"The tree of {', '.join(view.agents)} was planned {planned} and is not made."
        yield TreeFinding(Fault.LATE, str(row.id), words, "", "It is made when its agent works next: send to it.")
    if row.state is WorkspaceState.FAILED:
        words = f"The tree of {', '.join(view.agents)} could not be made: {row.problem}"
        yield TreeFinding(
            Fault.LATE, str(row.id), words, "", "It is tried again when its agent works next: send to it."
        )
    if row.state is WorkspaceState.READY:
        yield from _of_ready(workspaces, row)


def _of_ready(workspaces: WorkspaceFiles, row: Workspace) -> Iterator[TreeFinding]:
    from agentmesh.git import marker
    from agentmesh.git.repository_refs import has_tree, is_there

    if row.repository is None or not is_there(Path(row.repository)):
        shared = workspaces.database.run(rows.of_session, row.session_id, idempotent=True)
        yield _moved(workspaces, row, shared)
        return
    has_head = row.head is not None and has_tree(Path(row.repository), row.head)
    if not has_head:
        words = f"The newest snapshot of the tree {row.id} is not in {row.repository} any more."
        yield TreeFinding(
            Fault.NO_TREE, str(row.id), words, "", "Copy what you need from its directory; then kill its agent."
        )
    if not Path(str(row.path)).is_dir():
        yield TreeFinding(Fault.NO_DIRECTORY, str(row.id), f"{row.path} is gone.", _MAKE if has_head else "")
    elif marker.workspace(workspaces.folders.of(row.id)) != str(row.id):
        words = f"{workspaces.folders.of(row.id)} lacks the marker that says that it is ours."
        yield TreeFinding(Fault.NO_MARKER, str(row.id), words, "writes it again")


def _moved(workspaces: WorkspaceFiles, row: Workspace, shared: Workspace) -> TreeFinding:
    left = row.repository is not None and Path(row.repository).is_dir()
    words = f"The repository {row.repository} {'cannot be opened' if left else 'is not there any more'}."
    advice = f"Move it back, or bring {shared.path} back."
    try:
        found = workspaces.place(Path(str(shared.path)))
    except (NoRepository, OSError):
        return TreeFinding(Fault.MOVED, str(row.id), words, "", advice)
    if not found.common_dir.is_dir():
        return TreeFinding(Fault.MOVED, str(row.id), words, "", advice)
    return TreeFinding(
        Fault.MOVED, str(row.id), words, f"takes {found.common_dir}, which {shared.path} is in now", advice
    )


def _lost(kept: Kept) -> TreeFinding:
    words = f"The tree of snapshot {kept.snapshot_id} is gone: its ref {kept.ref} was removed."
    return TreeFinding(Fault.NO_TREE, str(kept.snapshot_id), words, "records that it was given up")


def _sessions(workspaces: WorkspaceFiles) -> Iterator[_SessionRepository]:
    run = workspaces.database.run
    views, undoing = run(rows.listing, None, idempotent=True), left(workspaces)
    writing = {one.session_id for one in run(merges.unfinished, workspaces.host, workspaces.os_user, idempotent=True)}
    writing |= {view.session_id for view in views if view.id in undoing}
    for view in views:
        if view.kind is WorkspaceKind.SHARED and view.repository and _is_here(workspaces, view):
            working = run(agents.busy, view.session_id, idempotent=True)
            yield _SessionRepository(view.session_id, Path(view.repository), working > 0 or view.session_id in writing)


def _is_here(workspaces: WorkspaceFiles, view: WorkspaceView) -> bool:
    return view.host is None or (view.host, view.os_user) == (workspaces.host, workspaces.os_user)
