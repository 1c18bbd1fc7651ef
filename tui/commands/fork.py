"""Carries out /fork, from captured text or from an earlier message."""

from __future__ import annotations

from agentmesh.domain.errors import UsageError
from agentmesh.domain.states import AgentStatus
from agentmesh.store import agents, person, sessions, travel
from agentmesh.tui.commands.calls import Done
from agentmesh.tui.commands.context import CommandContext


def fork_at(ctx: CommandContext, point: str) -> Done:
    """Make an idle child that begins where the agent in view was at a row (``@12``), and go to it.

    ``@`` lists the places. What is dead has no children: a new session begins with a copy.
    """
    if ctx.run_idempotent(person.is_capturing, ctx.in_view):
        raise UsageError("a capture is open, and /fork makes a child of it", hint="/cancel ends it; the text stays.")
    me = ctx.run_idempotent(agents.get, ctx.in_view)
    if point == "@":
        points = ctx.run_idempotent(travel.points, me.id)
        return Done(points=points) if points else Done(f"{me.name} has been told nothing yet.")
    if me.status == AgentStatus.DEAD:
        made = ctx.run(travel.fork_session, me.id, int(point[1:]))
        text = f"A new session, a copy of {me.name} at row {made.upto}; it waits for what you write."
        return Done(text, session=ctx.run_idempotent(sessions.get, made.session_id))
    made = ctx.run(travel.fork_at, me.id, "fork", int(point[1:]))
    return Done(f"Forked {made.name} at row {made.upto}; it waits for what you write.", goto=made.id)


def fork(ctx: CommandContext, point: str | None = None) -> Done:
    """Make a child of the captured text, or an idle one (from an earlier place, if one is given), and go to it."""
    if point is not None:
        return fork_at(ctx, point)
    child = ctx.run_idempotent(agents.get, ctx.run(person.fork_captured, ctx.in_view))
    if child.status == AgentStatus.RUNNING:
        ctx.ensure_served()
        return Done(f"Forked {child.name}.", goto=child.id)
    return Done(f"Forked {child.name}; it waits for what you write.", goto=child.id)
