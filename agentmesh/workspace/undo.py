"""Taking back what an agent changed, in its files and in its conversation; and taking that back.

The files go first. So after a crash in between the same command does the rest: files that are as they should be are
left alone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agentmesh.domain.errors import AgentBusy, NoRepository, NothingToRestore, UnknownFile
from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import Agent
from agentmesh.domain.states import AgentStatus
from agentmesh.domain.text import one_line, visible
from agentmesh.domain.workspaces import Snapshot
from agentmesh.store import agents, context, merges, snapshots
from agentmesh.store import workspaces as rows
from agentmesh.workspace import turns
from agentmesh.workspace.results import Undone, UndoStatus
from agentmesh.workspace.returning import Files
from agentmesh.workspace.undo_plan import UndoPlan, plan

if TYPE_CHECKING:
    from agentmesh.workspace.files import WorkspaceFiles

_RECENT: Final = 500
"""Snapshots among which the newest undo is looked for."""


def undo(
    workspaces: WorkspaceFiles,
    agent: AgentId,
    *,
    files: bool = True,
    conversation: bool = True,
    paths: Collection[str] | None = None,
    preview: bool = False,
    agreed: str | None = None,
) -> Undone:
    """Take back the newest turn of an idle agent: what it changed in files, and its rows.

    If a person has merged files into its directory since that turn, only the newest such merge is taken back.

    ``paths``: only these files or folders, relative to the agent's directory. The present is a snapshot before, so
    ``redo`` brings it back. If somebody else has changed one of the files since, nothing is changed, and the result
    names them. ``preview`` only looks. ``agreed`` is the plan of a preview: if another one is to be carried out by now,
    the result is only a preview of that. Raise AgentBusy, UnknownAgent, NoRepository, TreeBusy or TreeError;
    UnknownFile for a path that it did not change in what would be taken back.
    """
    me = _idle(workspaces, agent)
    turn = turns.newest(workspaces.database, agent)
    merged = turns.merged_since(workspaces.database, agent, turn)
    if merged is not None and files:
        return _back(workspaces, me, merged.id - 1, None, paths, preview=preview, agreed=agreed)
    if turn.start is None:
        _require_known(me, tuple(paths or ()))
        return Undone(UndoStatus.NOTHING, me.name)
    # What was merged between the turn before and this one belongs to neither: files go back to where this one began.
    back = turn.start - 1
    return _to(workspaces, me, back, files, conversation, paths, began=turn.start, preview=preview, agreed=agreed)


def rewind(
    workspaces: WorkspaceFiles,
    agent: AgentId,
    row: int,
    *,
    files: bool = True,
    conversation: bool = True,
    paths: Collection[str] | None = None,
    preview: bool = False,
    agreed: str | None = None,
) -> Undone:
    """Take back everything that an agent did after a row of its own; otherwise like ``undo``.

    Raise BadArgument if it has no such row; 0 is before its first.
    """
    return _to(workspaces, _idle(workspaces, agent), row, files, conversation, paths, preview=preview, agreed=agreed)


def redo(
    workspaces: WorkspaceFiles,
    agent: AgentId,
    *,
    files: bool = True,
    conversation: bool = True,
    preview: bool = False,
    agreed: str | None = None,
) -> Undone:
    """Take back the newest undo or rewind that was not taken back yet, unless the agent has worked since.

    ``preview`` only looks which files it would write, and ``agreed`` is as for ``undo``.
    """
    me = _idle(workspaces, agent)
    done = Undone(UndoStatus.NOTHING, me.name)
    last = _newest_undo(workspaces, agent) if files else None
    if last is not None and conversation:
        undone = workspaces.database.run(context.undone, agent, last.id, idempotent=True)
        gap = (undone.rewound or 0) - (undone.files or 0)
        if gap > 1:  # an undo of both writes its two rows one after the other: the newest one changed no files
            last = None
        conversation = gap > 0
    if last is not None:
        done = _again(workspaces, me, last, preview=preview, agreed=agreed)
        if done.status is UndoStatus.REFUSED:
            return done
    if agreed not in (None, done.plan):
        return replace(done, status=UndoStatus.PREVIEW)
    if conversation and not preview:
        try:
            row = workspaces.database.run(context.restore, agent)
        except NothingToRestore:
            return done
        return replace(done, status=UndoStatus.DONE, row=row)
    return done


def _idle(workspaces: WorkspaceFiles, agent: AgentId) -> Agent:
    found = workspaces.database.run(agents.get, agent, idempotent=True)
    if found.status is AgentStatus.RUNNING:
        raise AgentBusy(f"{found.name} is working", hint="Interrupt it first, or wait until it is idle.")
    return found


def _to(
    workspaces: WorkspaceFiles,
    me: Agent,
    row: int,
    files: bool,
    conversation: bool,
    paths: Collection[str] | None,
    *,
    began: int | None = None,
    preview: bool,
    agreed: str | None,
) -> Undone:
    """Take back what came after a row; the files, if it is given, only to what they were at the row ``began``."""
    run = workspaces.database.run
    done = Undone(UndoStatus.NOTHING, me.name)
    if files:
        start = run(snapshots.newest_before, me.id, row if began is None else began, idempotent=True)
        try:
            done = _back(workspaces, me, start.id if start else 0, row, paths, preview=preview, agreed=agreed)
        except NoRepository as reason:
            if not conversation:
                raise
            done = replace(done, note=f"Files stay as they are: {reason.message}")
    if done.status is not UndoStatus.REFUSED and agreed not in (None, done.plan):
        return replace(done, status=UndoStatus.PREVIEW)
    if done.status is UndoStatus.REFUSED or preview or not conversation or paths is not None:
        return done
    return replace(done, status=UndoStatus.DONE, row=run(context.rewind_to, me.id, row))


def _back(
    workspaces: WorkspaceFiles,
    me: Agent,
    after: int,
    row: int | None,
    paths: Collection[str] | None,
    *,
    preview: bool,
    agreed: str | None,
) -> Undone:
    """Put back what the agent's work has changed in the snapshots after one."""
    workspace = workspaces.database.run(rows.of_agent, me.id, idempotent=True)
    into = {one.id: one for one in workspaces.database.run(merges.into, workspace.id, after, idempotent=True)}

    def planned(at: Files) -> UndoPlan:
        return plan(at.since(after), into, me.id, at.changed, paths)

    with Files.held(workspaces, workspace) as at:
        found = planned(at)
        _require_known(me, found.unknown)
        names = tuple(at.name_of(into[one].source_agent) for one in found.merges)
        said = f"took the files back to row {row}" if row is not None else f"undid the merge of {', '.join(names)}"
        done = at.put_back(me, "undo", found, said, preview=preview, agreed=agreed, row=row, undoes=found.merges)
    return replace(done, merges=names if done.status in (UndoStatus.DONE, UndoStatus.PREVIEW) else ())


def _require_known(me: Agent, unknown: tuple[str, ...]) -> None:
    """Refuse paths that the agent's work did not change: most are mistyped."""
    if unknown:
        raise UnknownFile(
            f"what would be taken back of {me.name} has not changed {one_line(visible(unknown[0]), 100)}",
            hint=f"`agentmesh diff {me.name}` (/diff) shows what it changed; rewind goes further back.",
        )


def _newest_undo(workspaces: WorkspaceFiles, agent: AgentId) -> Snapshot | None:
    """Return the newest undo that was not redone, unless the agent has changed files since."""
    redone = 0
    for one in workspaces.database.run(snapshots.of_agent, agent, limit=_RECENT, idempotent=True):
        if one.kind == "redo":
            redone += 1
        elif one.kind == "undo" and redone == 0:
            return one
        elif one.kind == "undo":
            redone -= 1
        elif one.kind == "call":
            return None
    return None


def _again(workspaces: WorkspaceFiles, me: Agent, last: Snapshot, *, preview: bool, agreed: str | None) -> Undone:
    """Bring back what an undo has taken back, where nobody has changed the files since."""
    run = workspaces.database.run
    workspace = run(rows.get, last.workspace_id, idempotent=True)
    undone = run(merges.undone_by, last.id, idempotent=True)
    with Files.held(workspaces, workspace) as at:
        found = at.reversed(last)
        redoes = () if found.later else tuple(one.id for one in undone)
        done = at.put_back(me, "redo", found, "brought the files back", preview=preview, agreed=agreed, redoes=redoes)
        names = tuple(at.name_of(one.source_agent) for one in undone)
    return replace(done, merges=names if done.status is UndoStatus.DONE else ())
