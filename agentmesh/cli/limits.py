"""``agentmesh limits``: what the agents of a session may do besides its budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from agentmesh.cli.options import json_option, place_options
from agentmesh.cli.parameter_types import NAMED
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit
from agentmesh.domain.limits import OPTIONS, SPANS, WHAT, limit_named, option_of, read_limit

_HELP = {
    "max_turn_seconds": "Time of one turn; then it ends before its next model call.",
    "max_seconds": "Time of the session, from now on; then no further model call begins.",
    "max_turns": "Model calls in one turn; then it ends.",
    "max_agents": "Agents that may work or wait at once.",
    "max_living": "Agents that may live at once, idle ones too; none: ten times --max-agents.",
    "max_spawns": "Agents that the session may ever make.",
    "ask_agents": "Ask a person before one step starts so many agents; none: never.",
}


def limit_options(*words: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the decorator that adds an option for each of these limits, named by the words of ``OPTIONS``."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for word in reversed(words):
            name = OPTIONS[word]
            metavar = "SPAN" if name in SPANS else "N"
            told = _HELP.get(name, f"{WHAT[name].capitalize()}.")
            function = click.option(option_of(name), name, type=NAMED, metavar=metavar, help=told)(function)
        return function

    return decorate


def changes_of(given: dict[str, Any]) -> dict[str, int | None]:
    """Return the limits that options change; raise UsageError for text that is no limit."""
    return {name: read_limit(name, text) for name, text in given.items() if text is not None}


class _Limits(click.Command):
    """A command that says how a limit is written if one comes as a word, as in ``/limits turns 50`` of the screen."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        name = limit_named(args[0]) if args and not args[0].startswith("-") else None
        if name and not ctx.resilient_parsing:
            raise click.UsageError(f"Limits are options here: {option_of(name)} {' '.join(args[1:]) or 'N'}", ctx)
        return super().parse_args(ctx, args)


@click.command("limits", cls=_Limits)
@limit_options(*OPTIONS)
@json_option
@place_options()
def limits(*, as_json: bool, place: PlaceOptions, **given: str | None) -> None:
    """Show the session's limits and how much of each is used, or change them.

    N is a number and SPAN a time, as in 90s, 10m or 2h; `none` takes a limit away. A turn that has used its calls or
    its time ends before its next model call, and says so. Calls that run are not cut off. Tokens and money have caps
    in `agentmesh budget`.
    """
    from agentmesh.store import limits as store

    changes = changes_of(given)
    with place.mesh("limits") as mesh:
        session = place.find_session(mesh)
        if changes:
            mesh.database.run(store.set_limits, session.id, changes, idempotent=True)
        found = mesh.database.run(store.view, session.id, idempotent=True)
    if as_json:
        emit([one._asdict() for one in found])
        return
    from agentmesh.cli.render.limits import print_limits

    print_limits(found)
