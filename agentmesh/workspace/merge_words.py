"""What models, people and owners of files are told about merges. Everything in it is bounded."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from agentmesh.domain import figures
from agentmesh.domain.errors import TreeError
from agentmesh.domain.text import clip, storable
from agentmesh.git.facts import Conflict
from agentmesh.workspace.results import Checked, MergeResult, MergeStatus

if TYPE_CHECKING:
    from agentmesh.domain.workspaces import Merge
    from agentmesh.git.place import Place

_LOOK_AT_THEM: Final = "Somebody works with these files. Look at them, then merge again."
NAMED: Final = 20
"""Files that words name at most."""
_LISTED: Final = 200
"""Files in the result of a call."""
_SIDES: Final = 8
"""Conflicts that mail shows with both sides."""
_LONGEST_SIDE: Final = 4 * 1024
_LINES_AROUND: Final = 3
"""Lines shown before and after each line of a conflict."""
_STORED: Final = 200
"""Conflicts that a row keeps."""


def whose(name: str, *, down: bool) -> str:
    """Return words for the files of an agent."""
    return f"the files of {name}, its parent's" if down else f"the files of {name}"


def how_it_ended(checked: Checked) -> str:
    """Return how a check ended, in words."""
    if checked.timed_out:
        return "it ran out of time"
    return f"it exited with {checked.exit_code}" if checked.exit_code is not None else "it was ended from outside"


def told(result: MergeResult) -> dict[str, Any]:
    """Return the result of the call, as the model reads it."""
    said: dict[str, Any] = {"status": result.status.value}
    if result.files:
        said["files"] = [_file(one) for one in result.files[:_LISTED]]
        if len(result.files) > _LISTED:
            said["files_more"] = len(result.files) - _LISTED
    if result.conflicts:
        said["conflicts"] = [_named(one) for one in result.conflicts[:_LISTED]]
    if result.differs:
        said["differs"] = [storable(path) for path in result.differs[:_LISTED]]
    if result.check:
        said["check"] = {"command": result.check.command, "exit_code": result.check.exit_code}
        if result.status is MergeStatus.CHECK_FAILED:
            said["check"]["output"] = result.check.output
    if result.diff:
        said["diff"] = storable(result.diff)
    notes = " ".join(filter(None, (result.note, _advice(result), _left_out(result))))
    return {**said, **({"note": storable(notes)} if notes else {})}


def _left_out(result: MergeResult) -> str:
    if not result.left_out:
        return ""
    return f"Not merged, because they are too large for snapshots or unreadable: {listed(result.left_out)}."


def _advice(result: MergeResult) -> str:
    match result.status:
        case MergeStatus.MERGED if result.conflicts:
            return (
                "These files have both versions now, between <<<<<<< and >>>>>>>: edit each until it is right. A "
                "conflict without markers (a binary file, or one that one side removed) has one version: look whether "
                "it is the right one."
            )
        case MergeStatus.CONFLICTS if result.owner:
            told = f"{result.owner} was told, with both sides, to solve them"
            return f"Nothing was changed. {told}; wait for it, then merge again."
        case MergeStatus.CONFLICTS:
            return "Nothing was changed."
        case MergeStatus.CHECK_FAILED:
            return f"Nothing was changed: the check failed ({how_it_ended(result.check)})." if result.check else ""
        case MergeStatus.CHANGED:
            return f"Nothing was changed. {what_hinders(result) or _LOOK_AT_THEM}"
        case MergeStatus.NOTHING:
            return f"{result.source} has changed nothing that is not here already."
        case MergeStatus.PREVIEW if result.conflicts:
            return "Nothing was changed. These files conflict: a merge would be refused."
        case MergeStatus.PREVIEW:
            return "Nothing was changed: this is what a merge would do."
    return ""


def what_hinders(result: MergeResult) -> str:
    """Return advice about files that cannot be written although nobody has changed them; empty if there are none."""
    said = []
    if result.absent:
        said.append(
            f"Your sparse checkout leaves out {listed(result.absent)}. Add the folder with "
            "`git sparse-checkout add FOLDER`, then merge again."
        )
    if result.in_the_way:
        said.append(
            f"In the way is what no snapshot has, for example because Git ignores it: {listed(result.in_the_way)}. "
            "Move it away, then merge again."
        )
    return " ".join(said)


def changed_meanwhile(result: MergeResult) -> tuple[str, ...]:
    """Return the files that somebody has changed."""
    others = {*result.absent, *result.in_the_way}
    return tuple(path for path in result.differs if path not in others)


def why_changed(result: MergeResult) -> str:
    """Return the reason that a merge's row keeps."""
    parts = (
        ("changed meanwhile", changed_meanwhile(result)),
        ("left out by a sparse checkout", result.absent),
        ("in the way", result.in_the_way),
    )
    return "; ".join(f"{what}: {', '.join(paths)}" for what, paths in parts if paths)


def to_source(result: MergeResult) -> str:
    """Return the mail to the agent whose files were merged."""
    where = f"the tree of {result.target}" if result.target else "the session's directory"
    return f"Your files were merged into {where}: {listed([one.path for one in result.files])}."


def to_target(result: MergeResult) -> str | None:
    """Return the mail to the agent whose files have changed by a merge."""
    if not result.files and not result.conflicts:
        return None
    written = f": {listed([one.path for one in result.files])}" if result.files else ", which has not changed by that"
    parts = [f"The files of {result.source} were merged into your directory{written}."]
    if result.marked:
        parts.append(f"These have conflict markers: {listed(result.marked)}.")
    if result.unmarked:
        parts.append(
            f"These conflict and can have no markers: {listed(result.unmarked)}. Each has one version now. Look "
            "whether it is the right one: the next merge writes it over the other."
        )
    return " ".join([*parts, "Read a file again before you change it."])


def to_solve(result: MergeResult, hidden: Callable[[str], bool] | None = None) -> str:
    """Return the mail to the owner of files that conflict: what conflicts, both sides, and what to do.

    ``hidden`` says whether it must not see the sides of a file.
    """
    asker = result.asked_by or "the user"
    count = len(result.conflicts)
    some = "1 of them conflicts" if count == 1 else f"{count} of them conflict"
    lines = [
        f"{asker} cannot merge your files: {some} with what is there by now. Nothing was merged.",
        "",
        'Call merge("parent"): it brings the newer files into your tree, with both versions of each conflict between',
        "<<<<<<< and >>>>>>>. Keep what both sides meant, check that it works, and report that you can be merged.",
    ]
    for one in result.conflicts[:_SIDES]:
        lines += ["", f"{storable(one.path)}: {_kind(one)}"]
        if one.both and not (hidden and hidden(one.path)):
            lines += ["```", clip(_around(one.both), _LONGEST_SIDE), "```"]
    if len(result.conflicts) > _SIDES:
        lines += ["", f"Also: {listed([one.path for one in result.conflicts[_SIDES:]])}."]
    return storable("\n".join(lines))


def to_finish(result: MergeResult) -> str:
    """Return the mail to the owner of files that still have conflict markers."""
    asker = result.asked_by or "the user"
    said = f"{asker} cannot merge your files. {result.note}"
    return storable(f"{said} Edit each until it is right, and report that you can be merged.")


def of_dead(result: MergeResult) -> str:
    """Return advice about conflicts of a dead agent, which cannot solve them."""
    return (
        f"{result.note} {result.source} is dead, so nobody was told: fork an agent with a tree of its own, and let it "
        "make the same changes again."
    ).strip()


def markers_left(paths: Sequence[str]) -> str:
    """Return the sentence about files that still have conflict markers."""
    return f"Conflict markers are left in: {listed(paths)}."


def marked(place: Place, before: str, after: str, paths: Collection[str] | None = None) -> tuple[str, ...]:
    """Return the files, of ``paths`` if given, that have conflict markers which they did not have before."""
    from agentmesh.git.comparing import diff

    texts = [one for one in diff(place, before, after, paths=paths, context=0) if not one.binary]
    return tuple(one.path for one in texts if _has_markers(one.text))


def marked_by(place: Place, earlier: Iterable[Merge], paths: Sequence[str]) -> tuple[str, ...]:
    """Return the ``paths`` that got conflict markers from one of these merges.

    Other files may have such lines because they are about conflicts.
    """
    found: set[str] = set()
    for one in earlier:
        if not one.is_up and one.result is not None:
            with contextlib.suppress(TreeError):  # its trees may be gone
                new_here = set(marked(place, one.ours, one.result, paths))
                found |= new_here.intersection(marked(place, one.theirs, one.result, paths))
    return tuple(path for path in paths if path in found)


def conflicts_json(result: MergeResult) -> list[dict[str, Any]]:
    """Return conflicts as their row keeps them."""
    return [
        {"path": storable(one.path), **({"both": clip(one.both, _LONGEST_SIDE)} if one.both else {})}
        for one in result.conflicts[:_STORED]
    ]


def _has_markers(text: str) -> bool:
    """Whether a diff adds all three lines of a conflict, in their order."""
    wanted = iter(("+<<<<<<< ", "+=======", "+>>>>>>> "))
    marker = next(wanted)
    for line in text.split("\n"):
        if line.startswith(marker):
            following = next(wanted, None)
            if following is None:
                return True
            marker = following
    return False


def _file(one: Any) -> dict[str, Any]:
    return {"path": storable(one.path), "status": one.status, "added": one.added, "removed": one.removed}


def _named(one: Conflict) -> dict[str, str]:
    return {"path": storable(one.path), "kind": _kind(one)}


def _kind(one: Conflict) -> str:
    if one.both:
        return "both sides changed the same lines"
    if one.ours is None and one.theirs is None:
        return "both sides changed it, and it is no text"
    if one.ours is None:
        return "the other side removed it, or it is no text there"
    if one.theirs is None:
        return "you removed it, or it is no text"
    return "both sides changed it"


def _around(both: str) -> str:
    """Return the conflicts of a text with a few lines around each."""
    rows = both.split("\n")
    keep: set[int] = set()
    inside = False
    for n, row in enumerate(rows):
        inside = inside or row.startswith("<<<<<<< ")
        if inside:
            keep.update(range(max(n - _LINES_AROUND, 0), min(n + _LINES_AROUND + 1, len(rows))))
        inside = inside and not row.startswith(">>>>>>> ")
    shown, last = [], -1
    for n in sorted(keep):
        if n != last + 1:
            shown.append("...")
        shown.append(rows[n])
        last = n
    return "\n".join(shown)


def listed(paths: Sequence[str]) -> str:
    """Return some of these paths, and how many more there are."""
    return figures.listed([storable(path) for path in paths], NAMED)
