"""What /fork does: from captured text, or from an earlier message."""

from __future__ import annotations

from agentmesh.domain.errors import UsageError
from agentmesh.domain.states import AgentStatus
from agentmesh.store import agents, person, sessions, travel
from agentmesh.tui.commands.calls import Done
from agentmesh.tui.commands.context import Doing


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


def fork(doing: Doing, point: str | None = None) -> Done:
    """Make a child of the captured text, or an idle one (from an earlier place, if one is given), and go to it."""
    if point is not None:
        return fork_at(doing, point)
    child = doing.read(agents.get, doing.run(person.fork_captured, doing.in_view))
    if child.status == AgentStatus.RUNNING:
        doing.have_it_run()
        return Done(f"Forked {child.name}.", goto=child.id)
    return Done(f"Forked {child.name}; it waits for what you write.", goto=child.id)
