"""Carries out /limits."""

from __future__ import annotations

from agentmesh.domain.errors import UsageError
from agentmesh.domain.limits import OPTIONS, WHAT, Limit, limit_named, read_limit, word_of
from agentmesh.domain.text import one_line
from agentmesh.store import limits as store
from agentmesh.store.reader import QueryResult
from agentmesh.tui.commands.calls import Done
from agentmesh.tui.commands.context import CommandContext


def limits(ctx: CommandContext, *words: str) -> Done:
    """Show the session's limits, or change one: ``/limits turns 50``, ``/limits time none``."""
    if given := " ".join(words).split():
        return _change(ctx, given[0], " ".join(given[1:]))
    found = {one.name: one for one in ctx.run_idempotent(store.view, ctx.session.id)}
    rows: list[tuple[str | None, ...]] = [
        (word, *found[name].amounts, WHAT[name]) for word, name in OPTIONS.items() if name in found
    ]
    return Done("", table=QueryResult(["limit", "used", "at most", "meaning"], [], rows))


def _change(ctx: CommandContext, which: str, amount: str) -> Done:
    name = limit_named(which)
    if name is None:
        raise UsageError(
            f"There is no limit {one_line(which, 40)!r}.", hint=f"Limits are {', '.join(OPTIONS)}: /limits turns 50."
        )
    if not amount:
        word = word_of(name)
        raise UsageError(f"/limits {word} lacks the new limit.", hint=f"Write /limits {word} 50, or none for no limit.")
    value = read_limit(name, amount)
    ctx.run_idempotent(store.set_limits, ctx.session.id, {name: value})
    since = " from now on" if name == "max_seconds" and value is not None else ""
    return Done(f"Limit of the session: {WHAT[name]}, {Limit(name, value, None).amounts[1]}{since}.")
