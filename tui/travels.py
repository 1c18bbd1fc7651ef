"""What /search does, and /fork from an earlier message."""

from __future__ import annotations

from agentmesh.domain.errors import UsageError
from agentmesh.domain.states import AgentStatus
from agentmesh.domain.text import one_line
from agentmesh.store import agents, person, sessions, travel
from agentmesh.store import search as searches
from agentmesh.tui.calls import Done
from agentmesh.tui.doing import Doing

_MOST = 200


def search(doing: Doing, words: str) -> Done:
    """Find what the session's agents were told, said and did."""
    hits = doing.read(searches.search, words, doing.session.id, None, _MOST)
    if not hits:
        return Done(f"Nothing found for {one_line(words, 60)}. agentmesh search --all looks into all sessions.")
    return Done(hits=hits)


def fork_at(doing: Doing, point: str) -> Done:
    """Make an idle child that begins where the agent in view was at a row (``@12``), and go to it.

    ``@`` lists the places. What is dead has no children: a new session begins with a copy.
    """
    if doing.read(person.is_capturing, doing.in_view):
        raise UsageError("a capture is open, and /fork makes a child of it", hint="/cancel ends it; the text stays.")
    me = doing.read(agents.get, doing.in_view)
    if point == "@":
        points = doing.read(travel.points, me.id)
        return Done(points=points) if points else Done(f"{me.name} has been told nothing yet.")
    if me.status == AgentStatus.DEAD:
        made = doing.run(travel.fork_session, me.id, int(point[1:]))
        text = f"A new session, a copy of {me.name} at row {made.upto}; it waits for what you write."
        return Done(text, session=doing.read(sessions.get, made.session_id))
    made = doing.run(travel.fork_at, me.id, "fork", int(point[1:]))
    return Done(f"Forked {made.name} at row {made.upto}; it waits for what you write.", goto=made.id)
