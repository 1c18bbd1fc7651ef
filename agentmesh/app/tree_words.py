"""Sentences about merges and about what was taken back; the same in commands and in the terminal UI."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agentmesh.app.trees import figures, listed, shortened, target_of
from agentmesh.domain.text import one_line

if TYPE_CHECKING:
    from agentmesh.domain.rows import Session
    from agentmesh.workspace.results import MergeResult, Undone

_OUTPUT = 20
"""Lines of a failed check's output that people see."""


class Said(NamedTuple):
    """What people are told about an operation on files."""

    text: str
    """A sentence, or several."""
    is_done: bool
    """Whether nothing stood in its way."""


def about_merge(result: MergeResult, session: Session) -> Said:
    """Return what a merge did, or why it did nothing."""
    from agentmesh.workspace.results import MergeStatus

    source, target = _source(result, session), target_of(result, session)
    match result.status:
        case MergeStatus.MERGED:
            said, is_done = f"Merged {source} into {target}: {figures(result.files)}.", True
            if result.conflicts:
                paths = listed([one.path for one in result.conflicts])
                said += f" Both sides changed the same places: {result.target} finds conflict markers in {paths}."
        case MergeStatus.NOTHING:
            said, is_done = f"Nothing to merge: {source} has changed nothing that {target} does not have.", True
        case MergeStatus.PREVIEW:
            said, is_done = f"Merging {source} into {target} would change {figures(result.files)}.", True
            if result.conflicts:
                paths = listed([one.path for one in result.conflicts])
                said, is_done = f"Merging {source} into {target} would conflict in {paths}.", False
        case MergeStatus.CONFLICTS:
            paths = listed([one.path for one in result.conflicts])
            told = f" {result.owner} was told what both sides have, and works on it." if result.owner else ""
            said, is_done = f"Conflict: {source} and {target} changed the same places in {paths}.", False
            said += f" Nothing was merged.{told}"
        case MergeStatus.CHECK_FAILED:
            said, is_done = f"{_check(result)}, so nothing was merged.", False
        case MergeStatus.CHANGED:
            said = f"Files in {target} were changed meanwhile, so nothing was merged: {listed(result.differs)}."
            is_done = False
        case MergeStatus.STOPPED:
            said, is_done = "Interrupted before anything was merged.", False
    if result.left_out:
        said += f" No snapshot has {listed(result.left_out)}: too large, or of another repository."
    return Said(" ".join(filter(None, [said, one_line(result.note, 500)])), is_done)


def check_output(result: MergeResult) -> str:
    """Return the last lines of a check's output; empty if there was none, or if it passed."""
    check = result.check
    return "" if check is None or check.passed else "\n".join(check.output.rstrip().splitlines()[-_OUTPUT:])


def merge_question(result: MergeResult, session: Session) -> tuple[str, str]:
    """Return the question before a merge into the session's directory, by its preview, and its files."""
    source = _source(result, session)
    return f"Merge {source} into {target_of(result, session)}?", (
        f"It writes {figures(result.files)}: {listed([one.path for one in result.files])}."
    )


def about_undo(result: Undone, *, again: str, alone: str) -> Said:
    """Return what an undo, a redo or a rewind did; ``again`` and ``alone`` say how to redo it, and to undo one file."""
    from agentmesh.workspace.results import UndoStatus

    match result.status:
        case UndoStatus.DONE:
            said, is_done = f"{_restored(result)} {again}".rstrip(), True
        case UndoStatus.NOTHING:
            said, is_done = f"Nothing of {result.agent} can be taken back.", True
        case UndoStatus.PREVIEW:
            said, is_done = f"{result.agent}: it would write {figures(result.files)}.", True
        case UndoStatus.REFUSED:
            by = ", ".join(sorted({later.by or "somebody else" for later in result.refused}))
            paths = listed([later.path for later in result.refused])
            said, is_done = f"Changed since by {by}: {paths}. Nothing was written. {alone}".rstrip(), False
    if result.merges:
        said += f" Merges of {', '.join(result.merges)} are undone with it; they can be merged again."
    return Said(" ".join(filter(None, [said, one_line(result.note, 500)])), is_done)


def undo_question(result: Undone) -> tuple[str, str]:
    """Return the question before files are written, by a preview."""
    row = "" if result.row is None else f" Its conversation ends at row {result.row} then."
    return f"Take back what {result.agent} did?", (
        f"It writes {figures(result.files)}: {listed([one.path for one in result.files])}.{row}"
    )


def _restored(result: Undone) -> str:
    parts = []
    if result.files:
        parts.append(f"{figures(result.files)} written in the files of {result.agent}.")
    if result.row is not None:
        parts.append(f"The conversation of {result.agent} ends at row {result.row} now.")
    return " ".join(parts) or f"{result.agent} is as it was."


def _source(result: MergeResult, session: Session) -> str:
    return shortened(session.workdir) if result.source == "parent" else result.source


def _check(result: MergeResult) -> str:
    check = result.check
    if check is None:
        return "The check failed"
    command = one_line(check.command, 80)
    if check.timed_out:
        return f"The check {command!r} took too long"
    return f"The check {command!r} ended with exit code {check.exit_code}"
