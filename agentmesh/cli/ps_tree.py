"""``agentmesh ps`` and ``agentmesh tree``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agentmesh.cli.all_databases import all_databases
from agentmesh.cli.options import json_option, place_options
from agentmesh.cli.parameter_types import NAMED
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import agent_data, emit, in_database
from agentmesh.cli.serving import tell_unserved
from agentmesh.cli.talk import say
from agentmesh.domain.figures import plural
from agentmesh.domain.folded_agents import resting, silent, silent_note
from agentmesh.domain.ids import short
from agentmesh.domain.states import AgentStatus

if TYPE_CHECKING:
    from agentmesh.app import Mesh
    from agentmesh.domain.ids import SessionId
    from agentmesh.domain.rows import AgentView

_SOME = 1_000
_limit_option = click.option(
    "-n",
    "--limit",
    type=click.IntRange(0, 2**31 - 1),
    default=_SOME,
    show_default=True,
    metavar="N",
    help="Show the oldest N agents of each session; 0: all.",
)


def _agents(mesh: Mesh, session: SessionId, limit: int, dead: int, *, everybody: bool, sums: bool) -> list[AgentView]:
    """Return a session's agents, parents before their children; print a note if the limit cuts the list.

    The newest ``dead`` agents that are not reaped are included, and with ``everybody`` all dead ones. ``sums`` over
    their trees are included unless there are more agents than the limit: they require reading the whole session.
    """
    from agentmesh.store import agents

    if limit and not everybody:
        found = mesh.database.run(agents.page, session, limit + 1, dead, idempotent=True)
        if sums and len(found) <= limit:
            return mesh.database.run(agents.view, session, idempotent=True)
    else:
        found = mesh.database.run(agents.view, session, limit + 1 if limit else None, idempotent=True)
    if limit and len(found) > limit:
        say(f"the first {limit:,} agents of session {short(session)}; --limit N shows more, --limit 0 all")
        return found[:limit]
    return found


silent_option = click.option("--silent", "silents", is_flag=True, help="Include silent agents.")


@click.command()
@click.option(
    "-a", "--all", "everything", is_flag=True, help="All agents of the newest 50 sessions, even dead and reaped ones."
)
@silent_option
@_limit_option
@json_option
@place_options()
def ps(*, everything: bool, silents: bool, limit: int, as_json: bool, place: PlaceOptions) -> None:
    """List the living agents of the session, without sub-agents whose task is over, and without silent ones."""
    if everything and place.session is None:
        found = _everywhere(place, limit, sums=as_json)
    else:
        with place.mesh("ps") as mesh:
            session = place.find_session(mesh).id
            rows = _agents(mesh, session, limit, 0, everybody=everything, sums=as_json)
            tell_unserved(mesh, rows)
        found = [("", row) for row in rows]
    at_rest = resting([row for _, row in found])
    shown = [one for one in found if everything or not (one[1].status == AgentStatus.DEAD or one[1].id in at_rest)]
    if as_json:
        emit([{**agent_data(agent), **in_database(name)} for name, agent in shown])
        return
    folded = frozenset() if everything or silents else silent([row for _, row in found])
    count, shown = len(shown), [one for one in shown if one[1].id not in folded]
    from agentmesh.cli.render.agents import print_agents

    print_agents(shown, sessions=everything)
    if count > len(shown):
        say(f"{silent_note(count - len(shown))}: --silent")


def _everywhere(place: PlaceOptions, limit: int, *, sums: bool) -> list[tuple[str, AgentView]]:
    """Return the agents of the newest sessions of all databases, each with its database."""
    from agentmesh.store import sessions

    def agents_in(mesh: Mesh) -> list[AgentView]:
        newest = mesh.database.run(sessions.list_sessions, idempotent=True)
        return [row for one in newest for row in _agents(mesh, one.id, limit, 0, everybody=True, sums=sums)]

    with all_databases(place, "ps") as databases:
        answers = databases.ask(agents_in)
        for name, rows in answers.items():
            tell_unserved(databases.mesh(name), rows, one_session=len({row.session_id for row in rows}) == 1)
    return [(name, row) for name, rows in answers.items() for row in rows]


@click.command()
@click.option("-a", "--all", "everything", is_flag=True, help="Include sub-agents whose task is over, and silent ones.")
@click.option("--at", "moment", type=NAMED, metavar="TIME", help="The tree at 14:30, 2026-11-22 14:30, or 10m ago.")
@silent_option
@_limit_option
@json_option
@place_options()
def tree(
    *, everything: bool, silents: bool, moment: str | None, limit: int, as_json: bool, place: PlaceOptions
) -> None:
    """Show the session's agents as a tree, without reaped and silent ones, and sub-agents whose task is over."""
    if moment is not None:
        from agentmesh.cli.tree_at import show_tree_at

        show_tree_at(moment, everything=everything, silents=silents, as_json=as_json, place=place)
        return
    from agentmesh.cli.render.tree import tree_data, tree_table

    with place.mesh("tree") as mesh:
        session = place.find_session(mesh)
        rows = _agents(mesh, session.id, limit, limit, everybody=False, sums=as_json)
        tell_unserved(mesh, rows)
    if as_json:
        emit({"session_id": session.id, "agents": tree_data(rows, everything=everything)})
        return
    from agentmesh.cli.render.screen import print_block

    say(f"session {short(session.id)}  {session.title or session.workdir}" + ("  (ended)" if session.ended_at else ""))
    print_block(tree_table(rows, ids=True, everything=everything, silents=silents))
    at_rest = frozenset() if everything else resting(rows)
    hidden = sum(row.id in at_rest and row.reaped_at is None for row in rows)
    if hidden:
        say(f"{plural(hidden, 'sub-agent')} whose task is over: --all")
    if folded := 0 if everything or silents else len(silent(rows) - at_rest):
        say(f"{silent_note(folded)}: --silent")
