"""``agentmesh ps`` and ``agentmesh tree``."""

from __future__ import annotations

import click

from agentmesh.cli.options import Place, json_option, place_options
from agentmesh.cli.render.data import agent_data, emit
from agentmesh.cli.render.figures import plural
from agentmesh.cli.talk import say
from agentmesh.domain.ids import short
from agentmesh.domain.resting import resting
from agentmesh.domain.states import AgentStatus


@click.command()
@click.option(
    "-a", "--all", "everything", is_flag=True, help="Of the newest 50 sessions; also the dead, the reaped, the done."
)
@json_option
@place_options()
def ps(*, everything: bool, as_json: bool, place: Place) -> None:
    """List the living agents of the session, without sub-agents whose task is over."""
    from agentmesh.store import agents, sessions

    with place.mesh("ps") as mesh:
        if everything and place.session is None:
            chosen = [session.id for session in mesh.database.run(sessions.list_sessions, idempotent=True)]
        else:
            chosen = [place.find_session(mesh).id]
        rows = [row for session in chosen for row in mesh.database.run(agents.view, session, idempotent=True)]
    at_rest = resting(rows)
    shown = [row for row in rows if everything or not (row.status == AgentStatus.DEAD or row.id in at_rest)]
    if as_json:
        emit([agent_data(agent) for agent in shown])
        return
    from agentmesh.cli.render.agents import print_agents

    print_agents(shown, sessions=everything)


@click.command()
@click.option("-a", "--all", "everything", is_flag=True, help="Also sub-agents whose task is over.")
@click.option("--at", "moment", metavar="TIME", help="As it was at 14:30, 2026-11-22 14:30, or 10m ago.")
@json_option
@place_options()
def tree(*, everything: bool, moment: str | None, as_json: bool, place: Place) -> None:
    """Show the session's agents as a tree; the reaped are left out, and sub-agents whose task is over."""
    if moment is not None:
        from agentmesh.cli.tree_at import show_tree_at

        show_tree_at(moment, everything=everything, as_json=as_json, place=place)
        return
    from agentmesh.cli.render.tree import tree_data, tree_table
    from agentmesh.store import agents

    with place.mesh("tree") as mesh:
        session = place.find_session(mesh)
        rows = mesh.database.run(agents.view, session.id, idempotent=True)
    if as_json:
        emit({"session_id": session.id, "agents": tree_data(rows, everything=everything)})
        return
    from agentmesh.cli.render.screen import print_block

    say(f"session {short(session.id)}  {session.title or session.workdir}" + ("  (ended)" if session.ended_at else ""))
    print_block(tree_table(rows, ids=True, everything=everything))
    hidden = 0 if everything else sum(row.id in resting(rows) and row.reaped_at is None for row in rows)
    if hidden:
        say(f"{plural(hidden, 'sub-agent')} whose task is over: --all")
