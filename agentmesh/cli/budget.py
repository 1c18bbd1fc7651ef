"""``agentmesh budget`` and ``agentmesh cost``."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

import click

from agentmesh.cli.find_agents import find_agent
from agentmesh.cli.options import json_option, place_options
from agentmesh.cli.parameter_types import NAMED
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit
from agentmesh.cli.talk import say
from agentmesh.domain.budgets import Cap, parse_words, remark_on, total, unpriced

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.domain.budgets import Budget
    from agentmesh.domain.rows import Ref, Session


@click.command()
@click.argument("words", type=NAMED, nargs=-1, metavar="[AGENT] [AMOUNT]")
@json_option
@place_options()
def budget(words: tuple[str, ...], *, as_json: bool, place: PlaceOptions) -> None:
    """Show budgets, or cap what the session, or AGENT with all agents below it, may use.

    \b
    AMOUNT is money or tokens:
      5  $5  5usd                   US dollars
      2M  200k tokens  500000t      tokens: uncached input plus output
      none  none usd  none tokens   no cap

    A cap applies to model calls that begin after it. A call that would exceed it is refused, and the agent's turn ends.
    If nothing was capped before, calls that run now are counted when they end.
    """
    who, cap = parse_words(words)
    with place.mesh("budget", who=[who] if who else ()) as mesh:
        ref: Ref | None = None
        if who is None:
            session = place.find_session(mesh)
        else:
            ref, session = find_agent(mesh, place, who)
        if cap is not None:
            _set(mesh, session, ref, cap)
        found = _view(mesh, session, ref)
        above = _token_cap(mesh, ref)
    if as_json:
        emit([asdict(one) for one in found])
        return
    from agentmesh.cli.render.budgets import print_budgets

    if found:
        print_budgets(found)
    elif ref is not None:
        say(f"{ref.name} has no budget of its own; the session's holds for it too.")
    if remark := remark_on(found, above):
        say(remark)


def _set(mesh: Mesh, session: Session, ref: Ref | None, cap: Cap) -> None:
    from agentmesh.store import budgets

    agent = ref.id if ref else None
    mesh.database.run(budgets.set_budget, session.id, cap, agent, idempotent=True)


def _view(mesh: Mesh, session: Session, ref: Ref | None) -> list[Budget]:
    from agentmesh.store import budgets

    agent = ref.id if ref else None
    return mesh.database.run(budgets.view, session.id, agent, idempotent=True)


def _token_cap(mesh: Mesh, ref: Ref | None) -> int | None:
    from agentmesh.store import budgets

    return mesh.database.run(budgets.token_cap, ref.id, idempotent=True) if ref else None


@click.command()
@click.option(
    "--by",
    type=click.Choice(["agent", "model", "day"]),
    default="agent",
    show_default=True,
    help="One line for each; days are UTC's.",
)
@json_option
@place_options()
def cost(*, by: Literal["agent", "model", "day"], as_json: bool, place: PlaceOptions) -> None:
    """Show what the session's model calls used and cost."""
    from agentmesh.store import budgets

    with place.mesh("cost") as mesh:
        session = place.find_session(mesh)
        lines = mesh.database.run(budgets.costs, session.id, by, idempotent=True)
    if as_json:
        emit([_named(by, asdict(line)) for line in lines])
        return
    from agentmesh.cli.render.budgets import print_costs

    print_costs(by, lines)
    if remark := unpriced(total(lines).unpriced_calls):
        say(remark)


def _named(by: str, line: dict[str, Any]) -> dict[str, Any]:
    return {by: line.pop("what"), **line}
