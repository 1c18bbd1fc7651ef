"""``agentmesh mail``: an agent's unread mail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from agentmesh.cli.find_agents import find_agent
from agentmesh.cli.options import json_option, place_options
from agentmesh.cli.parameter_types import NAMED
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit
from agentmesh.cli.talk import say
from agentmesh.domain.figures import plural
from agentmesh.domain.mail import answers
from agentmesh.domain.text import one_line

if TYPE_CHECKING:
    from agentmesh.store.peek import Header

_WIDTH = 60


@click.command()
@click.argument("agent", type=NAMED)
@json_option
@place_options()
def mail(agent: str, *, as_json: bool, place: PlaceOptions) -> None:
    """List the unread mail of AGENT, the oldest first, at most 50: from whom, when, its size, and how it begins.

    An answer says which message it answers: `re 12: how that begins`. The mail stays unread. `agentmesh log` shows mail
    that was read.
    """
    from agentmesh.store.peek import peek

    with place.mesh("mail", who=[agent]) as mesh:
        ref, _ = find_agent(mesh, place, agent)
        found = mesh.database.run(peek, ref.id, idempotent=True)
    if as_json:
        emit(found.json())
        return
    for header in found.headers:
        print(_line(header))
    if found.unread > len(found.headers):
        say(f"{found.unread - len(found.headers)} more are unread.")
    elif not found.unread:
        say(f"{ref.name} has no unread mail.")


def _line(header: Header) -> str:
    kind = "urgent" if header.urgent else header.kind
    size = f"{header.bytes} bytes" + (f" and {plural(header.images, 'image')}" if header.images else "")
    head = f"{header.message_id}  {header.sent_at.astimezone():%Y-%m-%d %H:%M:%S}  {kind}  {size}"
    answered = answers(header.json())
    who = f"{header.sender_name} ({answered})" if answered else header.sender_name
    return f"{head}  {who}: {one_line(header.begins, _WIDTH)}"
