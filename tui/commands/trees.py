"""Carries out /merge, /undo, /redo and /rewind, which change an agent's files, or its conversation with them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agentmesh.app import trees
from agentmesh.app.tree_words import (
    CHANGED,
    about_merge,
    about_redo,
    about_undo,
    check_output,
    merge_question,
    redo_question,
    undo_question,
)
from agentmesh.domain.errors import UsageError
from agentmesh.domain.text import one_line, visible
from agentmesh.store import travel
from agentmesh.store.context import rewind as rewind_to_mark
from agentmesh.tui.commands.calls import YES, Done, Question
from agentmesh.tui.commands.context import CommandContext

if TYPE_CHECKING:
    from agentmesh.workspace.results import Later, MergeResult, Undone

_MERGE = "/merge [agent] [--preview | --check COMMAND]"
_ALONE = "/undo PATH takes back single files."
_LISTED = 40


class _Merge(NamedTuple):
    """The agent to merge, and the way to do it."""

    who: str | None
    is_preview: bool
    check: str | None


class _Parts(NamedTuple):
    """The parts to take back."""

    files: bool
    conversation: bool
    paths: Sequence[str] | None


def merge(ctx: CommandContext, *args: str) -> Done:
    """Merge an agent's own tree into what it was made from; ``parent``: what that has now into the tree in view."""
    from agentmesh.workspace.results import MergeStatus

    agreed, words = _without_yes(args)
    who, is_preview, check = _merge_of(words)
    down = who is not None and who.lower() == "parent"
    ref = ctx.agent(None if down else who)
    if agreed is None:
        found = trees.merge(ctx.mesh, ctx.session, ref.id, down=down, preview=True)
        if is_preview or found.status is MergeStatus.NOTHING:
            return Done("\n\n".join(filter(None, [about_merge(found, ctx.session).text, visible_lines(found.diff)])))
        if not (found.target or found.conflicts):
            return _question(merge_question(found, ctx.session), "merge", found.plan, words)
        agreed = None if found.target else found.plan
    result = trees.merge(ctx.mesh, ctx.session, ref.id, down=down, check=check, agreed=agreed)
    if result.status is MergeStatus.PREVIEW:
        return _question(merge_question(result, ctx.session), "merge", result.plan, words, again=True)
    ctx.ensure_served()
    return Done(_told(ctx, result))


def undo(ctx: CommandContext, *args: str) -> Done:
    """Take back the newest turn of the agent in view."""
    from agentmesh.workspace import undo as undoing

    agreed, words = _without_yes(args)
    return _take_back(ctx, "undo", words, _parts_of(words), undoing.undo, agreed)


def rewind(ctx: CommandContext, *args: str) -> Done:
    """Go back to a row of the agent in view (``@12``; ``@`` lists them), or in its conversation to a mark."""
    from agentmesh.workspace import undo as undoing

    agreed, words = _without_yes(args)
    point = words[0] if words and words[0].startswith("@") else None
    if point is None:
        ctx.run(rewind_to_mark, ctx.in_view, words[0] if words else None)
        return Done()
    if point == "@":
        points = ctx.run_idempotent(travel.points, ctx.in_view)
        return Done(points=points) if points else Done("The agent has been told nothing yet.")
    row = int(point[1:])

    return _take_back(ctx, "rewind", words, _parts_of(words[1:]), partial(undoing.rewind, row=row), agreed)


def redo(ctx: CommandContext, *args: str) -> Done:
    """Bring back what the newest /undo or /rewind of the agent in view took back."""
    from agentmesh.workspace import undo as undoing
    from agentmesh.workspace.results import UndoStatus

    agreed, _ = _without_yes(args)
    found = _once_agreed(partial(undoing.redo, ctx.mesh.workspaces, ctx.in_view), agreed)
    if found.status is UndoStatus.REFUSED:
        return Done("\n".join([about_redo(found).text, "", *_later(found.refused)]))
    if found.status is UndoStatus.PREVIEW:
        return _question(redo_question(found), "redo", found.plan, (), again=agreed is not None)
    return Done(about_redo(found).text)


def _take_back(
    ctx: CommandContext,
    name: str,
    words: Sequence[str],
    parts: _Parts,
    back: Callable[..., Undone],
    agreed: str | None,
) -> Done:
    """Look; ask if files are to be written; take back. ``agreed`` is the plan that a person has agreed to."""
    from agentmesh.workspace.naming import named
    from agentmesh.workspace.results import UndoStatus

    paths = named(ctx.mesh.workspaces, ctx.in_view, parts.paths or (), Path(ctx.session.workdir))
    how = parts._replace(paths=paths or None)._asdict()
    found = _once_agreed(partial(back, ctx.mesh.workspaces, ctx.in_view, **how), agreed)
    if found.status is UndoStatus.REFUSED:
        return Done("\n".join([about_undo(found, again="", alone=_ALONE).text, "", *_later(found.refused)]))
    if found.status is UndoStatus.PREVIEW:
        return _question(undo_question(found), name, found.plan, words, again=agreed is not None)
    return Done(about_undo(found, again="/redo brings it back.", alone=_ALONE).text)


def _once_agreed(work: Callable[..., Undone], agreed: str | None) -> Undone:
    """Do what a person has agreed to; without a yes only look, unless no file is to be written."""
    from agentmesh.workspace.results import UndoStatus

    if agreed is not None:
        return work(agreed=agreed)
    found = work(preview=True)
    is_free = not found.files and found.status is not UndoStatus.REFUSED
    return work(agreed=found.plan) if is_free else found


def _question(asked: tuple[str, str], name: str, plan: str, words: Sequence[str], *, again: bool = False) -> Done:
    """Ask before files are written; a yes holds for this plan only."""
    text, detail = asked
    return Done(question=Question(text, f"{CHANGED} {detail}" if again else detail, name, (YES, plan, *words)))


def _later(refused: Sequence[Later]) -> list[str]:
    lines = [f"  {one_line(visible(one.path), 100)}  changed by {one.by or 'somebody else'}" for one in refused]
    more = len(lines) - _LISTED
    return [*lines[:_LISTED], *([f"  and {more} more"] if more > 0 else [])]


def _told(ctx: CommandContext, result: MergeResult) -> str:
    said = about_merge(result, ctx.session).text
    output = check_output(result)
    return f"{said}\n\n{visible_lines(output)}" if output else said


def visible_lines(text: str) -> str:
    """Return the lines of a foreign text, with characters that a terminal would obey written out."""
    return "\n".join(visible(line) for line in text.rstrip("\n").split("\n"))


def _without_yes(args: Sequence[str]) -> tuple[str | None, tuple[str, ...]]:
    """Return the plan that a person has agreed to, None if they were not asked yet, and the other arguments."""
    return (args[1], tuple(args[2:])) if args and args[0] == YES else (None, tuple(args))


def _merge_of(args: Sequence[str]) -> _Merge:
    """Read what follows /merge."""
    rest = " ".join(args).strip()
    who = None
    if rest and not rest.startswith("--"):
        who, _, rest = rest.partition(" ")
        rest = rest.strip()
    if not rest:
        return _Merge(who, False, None)
    option, _, command = rest.partition(" ")
    if option == "--preview" and not command:
        return _Merge(who, True, None)
    if option == "--check" and command.strip():
        return _Merge(who, False, command.strip())
    raise UsageError(f"/merge does not know {one_line(rest, 40)}.", hint=f"Usage: {_MERGE}")


def _parts_of(args: Sequence[str]) -> _Parts:
    """Read what follows /undo, or the row of /rewind."""
    try:
        words = shlex.split(" ".join(args))
    except ValueError as error:
        raise UsageError(f"The paths have an odd quote: {error}.") from error
    options = {word for word in words if word.startswith("--")}
    paths = [word for word in words if not word.startswith("--")]
    if unknown := options - {"--files", "--conversation"}:
        raise UsageError(
            f"There is no option {one_line(min(unknown), 40)}.", hint="--files or --conversation; both without one."
        )
    if paths and "--conversation" in options:
        raise UsageError("With paths only files are taken back.", hint="Leave out --conversation, or the paths.")
    files = "--files" in options or "--conversation" not in options
    conversation = not paths and ("--conversation" in options or "--files" not in options)
    return _Parts(files, conversation, paths or None)
