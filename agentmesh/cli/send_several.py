"""``agentmesh send a,b MESSAGE``: one message to several agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentmesh.cli.find_agents import find_agent
from agentmesh.cli.place import PlaceOptions
from agentmesh.cli.render.data import emit
from agentmesh.cli.serving import start_worker_if_none
from agentmesh.cli.talk import say
from agentmesh.domain.audience import Audience
from agentmesh.domain.errors import UsageError
from agentmesh.domain.figures import plural
from agentmesh.domain.ids import MailId
from agentmesh.domain.timers import When

if TYPE_CHECKING:
    from agentmesh.app import Mesh


def goes_to_several(who: str) -> bool:
    """Return whether this means several agents: a list with commas, or an audience."""
    return "," in who or who.strip().lower() in set(Audience)


def require_plain(when: When, images: Sequence[str], answered: MailId | None) -> None:
    """Raise UsageError for options that a message to several cannot have."""
    if when.is_later or images or answered:
        raise UsageError(
            "A message to several is sent now, without images, and answers none.", hint="Send one to each agent."
        )


def send_to_several(
    mesh: Mesh, place: PlaceOptions, who: str, text: str, key: str | None, *, urgent: bool, as_json: bool
) -> None:
    """Send to the agents, print the id of each mail and its agent, and have the session served."""
    from agentmesh.store.send_many import audience_of, send_many

    audience, once = audience_of(who), key is not None
    if audience:
        session = place.find_session(mesh)
        sent = mesh.database.run(
            send_many, None, audience, text, key, around=session.root_id, urgent=urgent, idempotent=once
        )
    else:
        names = who.split(",")
        if not all(name.strip() for name in names):
            raise UsageError(
                "A name in the list is empty.", hint="Is a shell variable not set? agentmesh ps lists the agents."
            )
        found = [find_agent(mesh, place, one) for one in names]
        session = found[0][1]
        whom = [ref.id for ref, _ in found]
        sent = mesh.database.run(send_many, None, whom, text, key, urgent=urgent, idempotent=once)
    if as_json:
        emit({"status": "sent", "sent": [one.json() for one in sent]})
    else:
        say(f"Sent to {plural(len(sent), 'agent')}.")
        for one in sent:
            print(f"{one.message_id}  {one.name}")
    start_worker_if_none(mesh, session)
