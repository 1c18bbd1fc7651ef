"""``agentmesh context``: what fills an agent's context."""

from __future__ import annotations

import click

from agentmesh.cli.find_agents import find_agent
from agentmesh.cli.options import json_option, place_options
from agentmesh.cli.parameter_types import NAMED
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit
from agentmesh.cli.talk import say
from agentmesh.domain.ids import short


@click.command()
@click.argument("agent", type=NAMED)
@json_option
@place_options()
def context(agent: str, *, as_json: bool, place: PlaceOptions) -> None:
    """Show what fills the context of AGENT: the next request to its model; tokens are estimated."""
    from agentmesh.store import agents
    from agentmesh.store import context as contexts

    with place.mesh("context", who=[agent]) as mesh:
        ref, _session = find_agent(mesh, place, agent)
        model = mesh.database.run(agents.get, ref.id, idempotent=True).model
        parts = mesh.database.run(contexts.filling, ref.id, idempotent=True)
        window = mesh.context_window(model)
    whole = contexts.total(parts)
    if as_json:
        data = [
            {"part": one.part, "tool": one.tool, "messages": one.rows, "bytes": one.bytes, "tokens": one.tokens}
            for one in parts
        ]
        emit(
            {
                "agent_id": ref.id,
                "name": ref.name,
                "model": model,
                "window": window,
                "tokens": whole.tokens,
                "parts": data,
            }
        )
        return
    from agentmesh.cli.render.context import print_parts

    room = f"{window:,}" if window else "an unknown number"
    say(f"{ref.name} ({short(ref.id)}), {model}: about {whole.tokens:,} tokens of {room}")
    print_parts([*parts, whole], window or whole.tokens)
