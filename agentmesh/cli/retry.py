"""``agentmesh retry``: run the last turn of agents again."""

from __future__ import annotations

import click

from agentmesh.cli.each_agent import print_each
from agentmesh.cli.find_agents import find_agents
from agentmesh.cli.options import json_option, place_options
from agentmesh.cli.parameter_types import NAMED
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.serving import start_worker_if_none
from agentmesh.cli.talk import say
from agentmesh.domain.errors import Refused, UsageError


@click.command()
@click.argument("agents", metavar="[AGENT]...", type=NAMED, nargs=-1)
@click.option("--all", "everybody", is_flag=True, help="All agents of the session whose last turn failed.")
@json_option
@place_options()
def retry(agents: tuple[str, ...], *, everybody: bool, as_json: bool, place: PlaceOptions) -> None:
    """Run the last turn of each AGENT (or --all) again, without a new message. Prints the agents that run again.

    It is for turns that ended with an error, at a limit or without budget. An agent that was interrupted goes on if you
    name it; --all leaves it idle.
    """
    from agentmesh.app.retrying import retry_each, retry_failed

    if bool(agents) == everybody:
        raise UsageError("Which agents should run again?", hint="Name them, or give --all.")
    with place.mesh("retry", who=agents) as mesh:
        refused: list[Refused] = []
        if everybody:
            sessions = [place.find_session(mesh)]
            retried = retry_failed(mesh.database, sessions[0].id)
        else:
            found = find_agents(mesh, place, agents)
            sessions = list({session.id: session for session in found.values()}.values())
            retried, refused = retry_each(mesh.database, found)
        for session in sessions if retried else ():
            start_worker_if_none(mesh, session)
    print_each("retried", retried, refused, as_json=as_json)
    if not retried and not as_json:
        say("No agent's last turn failed.")
