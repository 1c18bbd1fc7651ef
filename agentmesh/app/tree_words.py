"""Sentences about merges and about what was taken back; the same in commands and in the terminal UI."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from agentmesh.app.trees import figures, listed, target_of
from agentmesh.domain.text import one_line

if TYPE_CHECKING:
    from agentmesh.domain.rows import Session
    from agentmesh.workspace.results import MergeResult, Undone

CHANGED = "What it would write has changed since you were asked."
"""The sentence before the question is asked again."""
ASKED = 12
"""Files that a question names; a command lists them all if there are more."""
_OUTPUT = 20
"""Lines of a failed check's output that people see."""


class Said(NamedTuple):
    """The words for people about the result of an operation on files."""

    text: str
    """A sentence, or several."""
    is_done: bool
    """Whether nothing stands in its way, and nothing is left to solve."""


def about_merge(result: MergeResult, session: Session) -> Said:
    """Return the words about a merge: what it changed, or why it changed nothing."""
    from agentmesh.workspace.results import MergeStatus

    is_done = result.status in (MergeStatus.MERGED, MergeStatus.NOTHING, MergeStatus.PREVIEW) and not result.conflicts
    if result.status is MergeStatus.PREVIEW and result.note:  # it says why the merge would be refused
        is_done = False
    left = f"No snapshot has {listed(result.left_out)}: too large, unreadable, or part of another repository."
    parts = [_merged(result, session), left if result.left_out else "", one_line(result.note, 500)]
    return Said(" ".join(filter(None, parts)), is_done)


def _merged(result: MergeResult, session: Session) -> str:
    from agentmesh.workspace.results import MergeStatus

    source, target = f"the files of {result.source}" if result.down else result.source, target_of(result, session)
    conflicts = listed([one.path for one in result.conflicts])
    markers = _left_to_solve(result) if result.down else ""
    met = f"Conflict in {conflicts}: {source} and {target} changed the same places. " if result.conflicts else ""
    what = " what both sides have," if result.conflicts else ""
    told = f" {result.owner} was told{what} and works on it." if result.owner else ""
    would = f"would conflict in {conflicts}" if result.conflicts else f"would change {figures(result.files)}"
    said: dict[str, str] = {
        MergeStatus.MERGED: f"Merged {source} into {target}: {figures(result.files)}.{markers}",
        MergeStatus.NOTHING: f"Nothing to merge: {source} and {target} differ in nothing new.",
        MergeStatus.PREVIEW: f"Merging {source} into {target} {would}.",
        MergeStatus.CONFLICTS: f"{met}Nothing was merged.{told}",
        MergeStatus.CHECK_FAILED: f"{_check(result)}, so nothing was merged.",
        MergeStatus.CHANGED: _changed(result, target),
        MergeStatus.STOPPED: "Interrupted before anything was merged.",
    }
    return said[result.status]


def _left_to_solve(result: MergeResult) -> str:
    """Return sentences, after a space, about the conflicts of a merge downwards; "" if there are none."""
    words = f" {result.target} finds conflict markers in {listed(result.marked)}." if result.marked else ""
    if result.unmarked:
        words += (
            f" No markers are possible in {listed(result.unmarked)}: the tree of {result.target} has one version, "
            "which the next merge writes over the other."
        )
    return words


def _changed(result: MergeResult, target: str) -> str:
    from agentmesh.workspace.merge_words import changed_meanwhile, what_hinders

    hinders, others = what_hinders(result), changed_meanwhile(result)
    if hinders and not others:
        return f"Nothing was merged. {hinders}"
    said = f"Files in {target} were changed meanwhile, so nothing was merged: {listed(others)}."
    return f"{said} {hinders}".rstrip()


def check_output(result: MergeResult) -> str:
    """Return the last lines of a check's output; empty if there was none, or if it passed."""
    check = result.check
    return "" if check is None or check.passed else "\n".join(check.output.rstrip().splitlines()[-_OUTPUT:])


def merge_question(result: MergeResult, session: Session) -> tuple[str, str]:
    """Return the question before a merge into the session's directory, by its preview, and its files."""
    files = f"{figures(result.files)}: {listed([one.path for one in result.files], ASKED)}"
    return f"Merge {result.source} into {target_of(result, session)}?", f"It writes {files}."


def about_undo(result: Undone, *, again: str, alone: str) -> Said:
    """Return the words about an undo or a rewind; ``again`` and ``alone`` say how to redo it, and to undo one file."""
    merges = f"That undoes the merge of {', '.join(result.merges)}." if result.merges else ""
    return _about(result, merges, again, alone)


def about_redo(result: Undone) -> Said:
    """Return the words about a redo."""
    merges = f"What was merged from {', '.join(result.merges)} is there again." if result.merges else ""
    row = "" if result.row is None else f"Its conversation has what came after row {result.row} again."
    return _about(replace(result, row=None), " ".join(filter(None, [row, merges])))


def _about(result: Undone, merges: str, again: str = "", alone: str = "") -> Said:
    from agentmesh.workspace.results import UndoStatus

    by = ", ".join(sorted({later.by or "somebody else" for later in result.refused}))
    paths = listed([later.path for later in result.refused])
    said: dict[str, str] = {
        UndoStatus.DONE: f"{_restored(result)} {again}".rstrip(),
        UndoStatus.NOTHING: f"There is nothing of {result.agent} to take back, or to bring back.",
        UndoStatus.PREVIEW: f"It would write {figures(result.files)}.{_unsure(result)}",
        UndoStatus.REFUSED: f"Nothing was written: since then {by} has changed {paths}. {alone}".rstrip(),
    }
    parts = [said[result.status], merges, one_line(result.note, 500)]
    return Said(" ".join(filter(None, parts)), result.status is not UndoStatus.REFUSED)


def redo_question(result: Undone) -> tuple[str, str]:
    """Return the question before files are brought back, by a preview."""
    return f"Bring back what was undone of {result.agent}?", f"It writes {_named(result)}."


def _named(result: Undone) -> str:
    named = listed([one.path for one in result.files], ASKED)
    return f"{figures(result.files)}: {named}" if named else "no file"


def undo_question(result: Undone) -> tuple[str, str]:
    """Return the question before files are written, by a preview."""
    row = "" if result.row is None else f" The conversation ends at row {result.row} then."
    what = f"the merge of {', '.join(result.merges)}" if result.merges else f"what {result.agent} did"
    return f"Take back {what}?", f"It writes {_named(result)}.{_unsure(result)}{row}"


def _unsure(result: Undone) -> str:
    if not result.by_command:
        return ""
    which = listed(result.by_command) if len(result.by_command) < len(result.files) else "them"
    return f" A command changed {which}: what somebody else saved there while it ran goes too."


def _restored(result: Undone) -> str:
    parts = []
    if result.files:
        parts.append(f"Wrote {figures(result.files)}.")
    if result.row is not None:
        parts.append(f"The conversation of {result.agent} ends at row {result.row} now.")
    return " ".join(parts) or "No file was written."


def _check(result: MergeResult) -> str:
    check = result.check
    if check is None:
        return "The check failed"
    command = one_line(check.command, 80)
    if check.timed_out:
        return f"The check {command!r} took too long"
    return f"The check {command!r} ended with exit code {check.exit_code}"
