"""Carries out /merge, /undo, /redo and /rewind: what becomes of an agent's files, and of its conversation with them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agentmesh.app import trees
from agentmesh.app.tree_words import about_merge, about_redo, about_undo, check_output, merge_question, undo_question
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
    """What to merge, and how."""

    who: str | None
    is_preview: bool
    check: str | None


class _Parts(NamedTuple):
    """What to take back."""

    files: bool
    conversation: bool
    paths: Sequence[str] | None


def merge(ctx: CommandContext, *args: str) -> Done:
    """Merge an agent's own tree into what it was made from; ``parent``: what that has now into the tree in view."""
    from agentmesh.workspace.results import MergeStatus

    is_sure, words = _without_yes(args)
    who, is_preview, check = _merge_of(words)
    down = who is not None and who.lower() == "parent"
    ref = ctx.agent(None if down else who)
    found = trees.merge(ctx.mesh, ctx.session, ref.id, down=down, preview=True)
    if is_preview or found.status is MergeStatus.NOTHING:
        return Done("\n\n".join(filter(None, [about_merge(found, ctx.session).text, visible_lines(found.diff)])))
    if not (is_sure or found.target or found.conflicts):
        return Done(question=Question(*merge_question(found, ctx.session), "merge", (YES, *words)))
    result = trees.merge(ctx.mesh, ctx.session, ref.id, down=down, check=check)
    ctx.ensure_served()
    return Done(_told(ctx, result))


def undo(ctx: CommandContext, *args: str) -> Done:
    """Take back the newest turn of the agent in view."""
    from agentmesh.workspace import undo as undoing

    is_sure, words = _without_yes(args)
    return _take_back(ctx, "undo", words, _parts_of(words), undoing.undo, is_sure=is_sure)


def rewind(ctx: CommandContext, *args: str) -> Done:
    """Go back to a row of the agent in view (``@12``; ``@`` lists them), or in its conversation to a mark."""
    from agentmesh.workspace import undo as undoing

    is_sure, words = _without_yes(args)
    point = words[0] if words and words[0].startswith("@") else None
    if point is None:
        ctx.run(rewind_to_mark, ctx.in_view, words[0] if words else None)
        return Done()
    if point == "@":
        points = ctx.run_idempotent(travel.points, ctx.in_view)
        return Done(points=points) if points else Done("The agent has been told nothing yet.")
    row = int(point[1:])

    return _take_back(ctx, "rewind", words, _parts_of(words[1:]), partial(undoing.rewind, row=row), is_sure=is_sure)


def redo(ctx: CommandContext) -> Done:
    """Bring back what the newest /undo or /rewind of the agent in view took back."""
    from agentmesh.workspace import undo as undoing

    return Done(about_redo(undoing.redo(ctx.mesh.workspaces, ctx.in_view)).text)


def _take_back(
    ctx: CommandContext, name: str, words: Sequence[str], parts: _Parts, back: Callable[..., Undone], *, is_sure: bool
) -> Done:
    """Look; ask if files are to be written; take back."""
    from agentmesh.workspace.naming import named
    from agentmesh.workspace.results import UndoStatus

    paths = named(ctx.mesh.workspaces, ctx.in_view, parts.paths or (), Path(ctx.session.workdir))
    how = parts._replace(paths=paths or None)._asdict()
    found = back(ctx.mesh.workspaces, ctx.in_view, **how, preview=True)
    if found.status is UndoStatus.REFUSED:
        return Done("\n".join([about_undo(found, again="", alone=_ALONE).text, "", *_later(found.refused)]))
    if found.files and not is_sure:
        return Done(question=Question(*undo_question(found), name, (YES, *words)))
    found = back(ctx.mesh.workspaces, ctx.in_view, **how)
    return Done(about_undo(found, again="/redo brings it back.", alone=_ALONE).text)


def _later(refused: Sequence[Later]) -> list[str]:
    lines = [f"  {one_line(visible(one.path), 100)}  changed by {one.by or 'somebody else'}" for one in refused]
    more = len(lines) - _LISTED
    return [*lines[:_LISTED], *([f"  and {more} more"] if more > 0 else [])]


def _told(ctx: CommandContext, result: MergeResult) -> str:
    said = about_merge(result, ctx.session).text
    output = check_output(result)
    return f"{said}\n\n{visible_lines(output)}" if output else said


def visible_lines(text: str) -> str:
    """Return foreign text with what a terminal would obey written out, line by line."""
    return "\n".join(visible(line) for line in text.rstrip("\n").split("\n"))


def _without_yes(args: Sequence[str]) -> tuple[bool, tuple[str, ...]]:
    """Return whether a person has agreed already, and the other arguments."""
    return bool(args) and args[0] == YES, tuple(args[1:] if args and args[0] == YES else args)


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
