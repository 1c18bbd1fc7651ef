"""Comparing rows and directories both ways, and repairing what differs. Nothing is removed that is not ours.

A directory that no row knows is only named: another database may keep its trees in the same folder. ``remove`` takes
it away if a person says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import UUID

from agentmesh.domain.errors import AgentmeshError, UnknownWorkspace, WorkspaceInUse
from agentmesh.store import merges
from agentmesh.store import workspaces as rows
from agentmesh.workspace import checks, inspection, sweep
from agentmesh.workspace.applying import finish_left, is_left
from agentmesh.workspace.results import Fault, Mended, TreeFinding

if TYPE_CHECKING:
    from agentmesh.workspace.files import WorkspaceFiles


def look(workspaces: WorkspaceFiles) -> list[TreeFinding]:
    """Return the faults of workspaces of this host and user; change nothing."""
    return [
        *_unfinished(workspaces),
        *_checks_left(workspaces),
        *inspection.of_rows(workspaces),
        *inspection.of_folders(workspaces),
        *inspection.of_refs(workspaces),
    ]


def mend(workspaces: WorkspaceFiles, findings: Iterable[TreeFinding]) -> list[Mended]:
    """Do what the remedy of each finding says, unless the fault is gone by now."""
    now = {(one.fault, one.subject) for one in look(workspaces)}
    return [
        _mended(workspaces, one)
        if (one.fault, one.subject) in now
        else Mended(one, done=True, words="It is in order by now.")
        for one in findings
    ]


def remove(workspaces: WorkspaceFiles, workspace: UUID) -> Mended:
    """Remove the directory of an own workspace that nobody uses, or one that no row knows; its snapshots stay."""
    folder = workspaces.folders.of(workspace)
    finding = TreeFinding(Fault.LEFT, str(workspace), f"{folder} is to be removed.", "removes it")
    try:
        row = workspaces.database.run(rows.get, workspace, idempotent=True)
    except UnknownWorkspace:
        _require_nobodys(workspaces, workspace)
        return _removed_stray(workspaces, folder, finding)
    if sweep.remove(workspaces, row):
        return Mended(finding, done=True, words=f"{folder} is removed; its snapshots are kept.")
    return Mended(finding, done=False, words="It is in use, or its files could not be kept as a snapshot first.")


def _require_nobodys(workspaces: WorkspaceFiles, workspace: UUID) -> None:
    """Raise WorkspaceInUse if another database of the mesh knows a workspace, or may know it."""
    elsewhere = workspaces.elsewhere()
    if (name := elsewhere.known.get(workspace)) is not None:
        raise WorkspaceInUse(f"the database {name} knows {workspace}", hint=f"Name it: --database {name}.")
    if elsewhere.silent:
        raise WorkspaceInUse(
            f"the database {elsewhere.silent[0]} does not answer, and may know {workspace}",
            hint="Try again when it answers, or take it out of [databases].",
        )


def _removed_stray(workspaces: WorkspaceFiles, folder: Path, finding: TreeFinding) -> Mended:
    from agentmesh.git.trees import remove_tree

    if not folder.exists():
        return Mended(finding, done=False, words=f"There is no workspace {folder.name}.")
    if remove_tree(folder, folder.name, workspaces.folders.trees):
        return Mended(finding, done=True, words=f"{folder} is removed.")
    return Mended(finding, done=False, words=f"{folder} has no marker of ours, so it is left as it is.")


def _unfinished(workspaces: WorkspaceFiles) -> list[TreeFinding]:
    run = workspaces.database.run
    found = run(merges.unfinished, workspaces.host, workspaces.os_user, idempotent=True)
    return [
        TreeFinding(
            Fault.UNFINISHED,
            str(one.id),
            f"Merge {one.id} was cut short: its process is gone, and some of its files may be written.",
            "finishes it",
        )
        for one in found
        if _says(lambda one=one: is_left(workspaces, one))  # type: ignore[misc]
    ]


def _says(question: Callable[[], bool]) -> bool:
    """Return the answer; True if it cannot be given, because then something is wrong anyway."""
    try:
        return question()
    except AgentmeshError:
        return True


def _checks_left(workspaces: WorkspaceFiles) -> list[TreeFinding]:
    return [
        TreeFinding(Fault.CHECK_LEFT, str(folder), f"{folder} is left of a check that was cut short.", "removes it")
        for folder in checks.left(workspaces.folders.trees)
    ]


def _mended(workspaces: WorkspaceFiles, one: TreeFinding) -> Mended:
    if not one.remedy:
        return Mended(one, done=False, words=one.advice or "Nothing can be done about it here.")
    try:
        words = _REMEDIES[one.fault](workspaces, one.subject)
    except (AgentmeshError, OSError) as error:
        return Mended(one, done=False, words=error.message if isinstance(error, AgentmeshError) else str(error))
    return Mended(one, done=bool(words), words=words or "It could not be done; the log says why.")


def _finish(workspaces: WorkspaceFiles, subject: str) -> str:
    done = [one for one in finish_left(workspaces) if str(one.id) == subject]
    return f"It ended: {done[0].status.value}." if done else ""


def _clear_check(_workspaces: WorkspaceFiles, subject: str) -> str:
    return "It is removed." if checks.clear(Path(subject)) else ""


def _remove_left(workspaces: WorkspaceFiles, subject: str) -> str:
    row = workspaces.database.run(rows.get, UUID(subject), idempotent=True)
    return "Its directory is removed; its snapshots are kept." if sweep.remove(workspaces, row) else ""


_REMEDIES: Final[dict[Fault, Callable[[WorkspaceFiles, str], str]]] = {
    Fault.UNFINISHED: _finish,
    Fault.CHECK_LEFT: _clear_check,
    Fault.LEFT: _remove_left,
    Fault.NO_DIRECTORY: inspection.make_again,
    Fault.NO_MARKER: inspection.mark_again,
    Fault.MOVED: inspection.note_moved,
    Fault.NO_TREE: inspection.note_freed,
    Fault.STRAY_REF: inspection.free_ref,
}
