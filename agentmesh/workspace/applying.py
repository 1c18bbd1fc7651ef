"""The part of a merge that writes: from the row that plans it to the row that says that it is done.

The target's files stay locked from ``begin`` to ``end``. So if a merge is being written and nobody holds its lock, its
process is gone. The process that finds the merge goes on from its row: to write a file again changes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agentmesh.domain.errors import AgentmeshError, Fenced, TreeBusy, TreeError, TreeMoved, TurnInterrupted
from agentmesh.domain.log import logger
from agentmesh.domain.text import one_line
from agentmesh.domain.workspaces import Merge, MergeState, WorkspaceKind
from agentmesh.git.facts import Conflict, FileChange
from agentmesh.store import agents, merges, steps
from agentmesh.store import workspaces as rows
from agentmesh.store.call import Lease
from agentmesh.workspace import merge_words as words
from agentmesh.workspace.entries import entry, refs_of
from agentmesh.workspace.opening import held
from agentmesh.workspace.results import Checked, MergeResult, MergeStatus

if TYPE_CHECKING:
    from agentmesh.git.facts import Restored
    from agentmesh.git.store import Store
    from agentmesh.workspace.files import WorkspaceFiles

LOG = logger(__name__)
_TRIES: Final = 10


def apply_begun(
    workspaces: WorkspaceFiles, store: Store, row: Merge, lease: Lease | None, result: MergeResult
) -> MergeResult:
    """Write a merge that was begun just now, like ``apply``.

    If its files cannot be written, it is over: nobody writes them later, when the reason is gone.
    """
    try:
        restored = store.restore(str(row.result), row.ours)
    except TreeError as error:
        _call_off(workspaces, store, row, error)
        raise
    return _after(workspaces, store, row, lease, result, restored)


def apply(
    workspaces: WorkspaceFiles, store: Store, row: Merge, lease: Lease | None, result: MergeResult
) -> MergeResult:
    """Write a merge that was begun into the target, whose files the caller has locked, and end it.

    If files are not what the plan says, none is written, and the merge ends as refused.
    """
    return _after(workspaces, store, row, lease, result, store.restore(str(row.result), row.ours))


def _after(
    workspaces: WorkspaceFiles, store: Store, row: Merge, lease: Lease | None, result: MergeResult, restored: Restored
) -> MergeResult:
    """End a merge whose files are written, or were refused."""
    result = replace(result, id=row.id)
    if restored.refused:
        result = replace(result, absent=restored.absent, in_the_way=restored.in_the_way)
        return _give_up(workspaces, store, row, lease, result, restored.refused)
    try:
        _end(workspaces, store, row, lease, result)
    except (Fenced, TurnInterrupted):  # killed, interrupted or taken over meanwhile; the files are there all the same
        _end(workspaces, store, row, None, result)
        raise
    return result


def continued(workspaces: WorkspaceFiles, row: Merge, lease: Lease) -> MergeResult:
    """Go on with the merge of a call that runs again: finish it if it was cut short; the call gets its result."""
    run = workspaces.database.run
    if row.state is MergeState.WRITING:
        with held(workspaces, run(rows.get, row.target, idempotent=True)) as store:
            row = run(merges.get, row.id, idempotent=True) or row
            if row.state is MergeState.WRITING:
                return apply(workspaces, store, row, lease, result_of(workspaces, row))
    result = result_of(workspaces, row)
    assert lease.ordinal is not None  # noqa: S101  a call has one
    run(steps.finish_calls, lease, {lease.ordinal: words.told(result)}, idempotent=True)
    return result


def finish_into(workspaces: WorkspaceFiles, store: Store, target: Any) -> list[MergeResult]:
    """Finish the merge that was begun into a workspace, whose files the caller has locked; return how it ended."""
    return [
        apply(workspaces, store, row, None, result_of(workspaces, row))
        for row in workspaces.database.run(merges.unfinished, workspaces.host, workspaces.os_user, idempotent=True)
        if row.target == target
    ]


def finish_left(workspaces: WorkspaceFiles) -> list[MergeResult]:
    """Finish merges into directories of this host whose process is gone; return how they ended."""
    run, done = workspaces.database.run, []
    for row in run(merges.unfinished, workspaces.host, workspaces.os_user, idempotent=True):
        try:
            done += _finish(workspaces, row)
        except TreeBusy:
            continue  # somebody is at work on it
        except AgentmeshError as error:
            LOG.warning("merge %s cannot be finished yet: %s", row.id, error)
    return done


def is_left(workspaces: WorkspaceFiles, row: Merge) -> bool:
    """Return whether the process that was writing a merge is gone."""
    try:
        with held(workspaces, workspaces.database.run(rows.get, row.target, idempotent=True), wait=False):
            return True
    except TreeBusy:
        return False


def result_of(workspaces: WorkspaceFiles, row: Merge) -> MergeResult:
    """Return the result that a merge's row stands for; if it is still being written, what the result will be."""
    run = workspaces.database.run
    source = run(agents.get, row.source_agent, idempotent=True).name
    target = run(agents.get, row.target_agent, idempotent=True).name if row.target_agent else ""
    is_own = run(rows.get, row.target, idempotent=True).kind is WorkspaceKind.OWN
    status = MergeStatus.MERGED
    if row.state is MergeState.REFUSED:
        status = MergeStatus.CONFLICTS if row.conflicts else MergeStatus.CHANGED
        if row.check_exit is not None and row.check_exit != 0:
            status = MergeStatus.CHECK_FAILED
    checked = Checked(row.check_command, row.check_exit, "") if row.check_command is not None else None
    return MergeResult(
        status,
        source,
        target if is_own else "",
        down=not row.is_up,
        files=tuple(FileChange(*values) for values in row.files),
        conflicts=tuple(_conflict(one) for one in row.conflicts),
        owner=source if status is MergeStatus.CONFLICTS else "",
        check=checked,
        asked_by=target if row.by_agent is not None else "",
        id=row.id,
    )


def _conflict(stored: Any) -> Conflict:
    return Conflict(str(stored.get("path")), stored.get("ours"), stored.get("theirs"), str(stored.get("both") or ""))


def _finish(workspaces: WorkspaceFiles, row: Merge) -> list[MergeResult]:
    run = workspaces.database.run
    with held(workspaces, run(rows.get, row.target, idempotent=True), wait=False) as store:
        now = run(merges.get, row.id, idempotent=True)
        if now is None or now.state is not MergeState.WRITING:
            return []
        return [apply(workspaces, store, now, None, result_of(workspaces, now))]


def _call_off(workspaces: WorkspaceFiles, store: Store, row: Merge, error: TreeError) -> None:
    """End a merge whose files could not be written as refused; leave it to a sweep if some may be written."""
    try:
        if store.restore(row.ours, str(row.result)).refused:
            return
        reason = one_line(f"not written: {error.message}", 500)
        workspaces.database.run(merges.refused, row.id, reason, (), None, idempotent=True)
    except AgentmeshError as another:
        LOG.warning("merge %s is left as begun: %s", row.id, another)


def _end(workspaces: WorkspaceFiles, store: Store, row: Merge, lease: Lease | None, result: MergeResult) -> None:
    """Commit that the merge is in the target's files, with whatever else was changed there since it began."""
    run, chain = workspaces.database.run, workspaces.chain(row.target)
    ref = f"{refs_of(row.session_id)}merge/{row.id}"
    tree, snapshot = str(row.result), None
    store.keep(ref, tree)
    for _ in range(_TRIES):
        try:
            run(
                merges.end,
                row.id,
                lease,
                result=words.told(result),
                snapshot=snapshot,
                ref=ref,
                told_source=None if result.down else words.to_source(result),
                told_target=words.to_target(result),
                idempotent=True,
            )
        except TreeMoved:
            head = run(rows.get, row.target, idempotent=True).head
            found = store.take(head, ref)
            tree, snapshot = found.tree, entry(found, ref)
        else:
            chain.add(tree)
            return
    raise TreeBusy("the files kept changing while a merge was stored", hint="It is finished by the next worker.")


def _give_up(
    workspaces: WorkspaceFiles,
    store: Store,
    row: Merge,
    lease: Lease | None,
    result: MergeResult,
    differs: tuple[str, ...],
) -> MergeResult:
    """Put back what an earlier try has written, and end the merge as refused."""
    refused = {*differs, *store.take_back(str(row.result), row.ours)}
    result = replace(result, status=MergeStatus.CHANGED, differs=tuple(sorted(refused)), files=(), conflicts=())
    reason = one_line(words.why_changed(result), 500)
    told = {"result": words.told(result)}
    try:
        workspaces.database.run(merges.refused, row.id, reason, (), lease, **told, idempotent=True)
    except (Fenced, TurnInterrupted):
        workspaces.database.run(merges.refused, row.id, reason, (), None, **told, idempotent=True)
        raise
    return result
