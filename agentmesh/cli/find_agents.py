"""Find the agents that a person names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentmesh.cli.place import PlaceOptions
from agentmesh.domain.errors import AmbiguousAgent, UnknownAgent, UnknownMessage, UnknownSession
from agentmesh.domain.ids import MailId, short
from agentmesh.domain.rows import Ref, Session
from agentmesh.domain.text import one_line

if TYPE_CHECKING:
    from agentmesh.app import Mesh


def find_agent(mesh: Mesh, place: PlaceOptions, who: str) -> tuple[Ref, Session]:
    """Return the agent and its session: from the current session, or by id from any; raise UnknownAgent.

    With --session, only that session is searched.
    """
    from agentmesh.store import agents

    try:
        session = place.find_session(mesh)
        return mesh.database.run(agents.resolve, session.id, who, idempotent=True), session
    except (UnknownAgent, UnknownSession):
        found = _elsewhere(mesh, who) if place.session is None else None
        if found is None:
            raise
        return found


def find_agents(mesh: Mesh, place: PlaceOptions, names: Sequence[str]) -> dict[Ref, Session]:
    """Return the agents in their order, each once, with their sessions; raise UnknownAgent if one is not there."""
    return dict(find_agent(mesh, place, name) for name in names)


def addressee(mesh: Mesh, place: PlaceOptions, answered: MailId) -> tuple[Ref, Session]:
    """Return the agent that an answer to this message goes to, and the session; raise UnknownMessage.

    The message must be of the current session, because a number is mistyped more easily than an agent's id.
    """
    from agentmesh.store import agents, mailbox

    session = place.find_session(mesh)
    ref = mesh.database.run(mailbox.addressee, None, answered, idempotent=True)
    if mesh.database.run(agents.get, ref.id, idempotent=True).session_id != session.id:
        raise UnknownMessage(
            f"there is no message {answered} in the session {short(session.id)}",
            hint="--session names another session; agentmesh log --full shows the numbers of its messages.",
        )
    return ref, session


def _elsewhere(mesh: Mesh, who: str) -> tuple[Ref, Session] | None:
    from agentmesh.store import agents, sessions

    found = mesh.database.run(agents.anywhere, who.strip(), idempotent=True)
    if len(found) > 1:
        names = ", ".join(f"{ref.name} ({ref.id})" for ref, _ in found[:5])
        raise AmbiguousAgent(
            f"{one_line(who, 60)!r} fits agents of other sessions", hint=f"Give more of the id: {names}."
        )
    if not found:
        return None
    ref, session = found[0]
    return ref, mesh.database.run(sessions.get, session, idempotent=True)
