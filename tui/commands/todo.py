"""Carries out /todo: the board of the session's work."""

from __future__ import annotations

from agentmesh.domain.errors import UsageError
from agentmesh.domain.text import one_line
from agentmesh.store import todos
from agentmesh.store.reader import QueryResult
from agentmesh.tui.commands.calls import Done
from agentmesh.tui.commands.context import CommandContext

_WIDTH = 80
_USAGE = "Write /todo alone, /todo add text, /todo done 3 note, or /todo release 3."


def todo(ctx: CommandContext, words: str = "") -> Done:
    """List the board, add to it, mark an item as done, or take one from its owner."""
    action, _, rest = words.strip().partition(" ")
    session = ctx.session.id
    match action.lower():
        case "":
            return _listed(ctx)
        case "add":
            if not rest.strip():
                raise UsageError("The text of the todo is missing.", hint=_USAGE)
            return Done(f"Todo {ctx.run(todos.add_todo, session, None, rest.strip())} is on the board.")
        case "done":
            number, _, note = rest.strip().partition(" ")
            which = _number(number)
            ctx.run_idempotent(todos.finish_todo, session, None, which, note.strip() or None)
            return Done(f"Todo {which} is done.")
        case "release":
            which = _number(rest.strip())
            ctx.run_idempotent(todos.release_todo, session, None, which)
            return Done(f"Todo {which} is open.")
        case _:
            raise UsageError(f"{one_line(action, 30)!r} is nothing that /todo does.", hint=_USAGE)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise UsageError(f"{one_line(text, 30)!r} is not a todo's number.", hint=_USAGE)
    return int(text)


def _listed(ctx: CommandContext) -> Done:
    found = ctx.run_idempotent(todos.board, ctx.session.id)
    if not found:
        return Done("Nothing is on the board. /todo add text puts something there.")
    columns = ["todo", "what", "state", "owner", "after", "note"]
    return Done(table=QueryResult(columns, [], [_row(one) for one in found]))


def _row(one: todos.BoardTodo) -> tuple[str | None, ...]:
    state = "ready" if one.is_ready else one.status
    after = ", ".join(map(str, one.after))
    return (
        str(one.id),
        one_line(one.content, _WIDTH),
        state,
        one.owner_name or "",
        after,
        one_line(one.note or "", _WIDTH),
    )
