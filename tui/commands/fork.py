"""Carries out /fork: from captured text, from a prompt, or from an earlier message."""

from __future__ import annotations

import uuid

from agentmesh.app import trees
from agentmesh.domain.errors import UsageError
from agentmesh.domain.ids import AgentId
from agentmesh.domain.states import AgentStatus
from agentmesh.store import agents, mailbox, person, sessions, travel
from agentmesh.tui.commands import attachments
from agentmesh.tui.commands.calls import Done
from agentmesh.tui.commands.context import CommandContext

OWN = "--own"
"""The first argument of a fork with a tree of its own."""
_NAME = "fork"
"""The name of a child that was given none."""


def fork(ctx: CommandContext, *args: str) -> Done:
    """Make a child and go to it; ``args``: ``--own``, ``@row``, name and prompt; each may be absent.

    A prompt makes it run; without one it gets what was captured, or is idle. With ``--own`` it has a tree of its own.
    """
    own = True if args and args[0] == OWN else None
    point, (name, prompt) = _parts(args[1:] if own else args)
    if point is not None:
        return _fork_at(ctx, point, name, prompt, own)
    if prompt is None and not (own and not ctx.run_idempotent(person.is_capturing, ctx.in_view)):
        _refuse_own_capture(own)
        child = ctx.run(person.fork_captured, ctx.in_view, name or _NAME)
    else:
        _refuse_in_capture(ctx)
        shown = attachments.of(ctx, ctx.in_view, prompt or "")
        child = trees.fork(ctx.mesh, ctx.in_view, name or _NAME, None if shown.references else prompt, own=own)
        if prompt is not None and shown.references:  # fork takes no images: the prompt follows as the first message
            ctx.run_persistently(mailbox.send, None, child, prompt, f"tui-{uuid.uuid4()}", None, shown.references)
    made = ctx.run_idempotent(agents.get, child)
    where = ", with a tree of its own" if own else ""
    return _made(ctx, made.id, f"Forked {made.name}{where}", is_running=made.status == AgentStatus.RUNNING)


def _refuse_own_capture(own: bool | None) -> None:
    if own:
        raise UsageError("a capture is open, and its fork shares the files", hint="/cancel ends it; the text stays.")


def _parts(args: tuple[str, ...]) -> tuple[str | None, tuple[str | None, str | None]]:
    point = args[0] if args and args[0].startswith("@") else None
    name, prompt, *_ = (*(args if point is None else args[1:]), None, None)
    return point, (name, prompt)


def _fork_at(ctx: CommandContext, point: str, name: str | None, prompt: str | None, own: bool | None) -> Done:
    """Make a child that begins where the agent in view was at a row (``@12``), and go to it.

    ``@`` lists the places. What is dead has no children: a new session begins with a copy.
    """
    _refuse_in_capture(ctx)
    me = ctx.run_idempotent(agents.get, ctx.in_view)
    if point == "@":
        if name is not None:
            raise UsageError("@ lists places to begin at, and takes no name", hint=f"Name the row: /fork @12 {name}.")
        points = ctx.run_idempotent(travel.points, me.id)
        return Done(points=points) if points else Done(f"{me.name} has been told nothing yet.")
    row = int(point[1:])
    if me.status == AgentStatus.DEAD:
        if name is not None:
            raise UsageError(
                f"{me.name} is dead: a new session begins, with an agent called root", hint=f"/fork {point}"
            )
        made = trees.fork_session(ctx.mesh, me.id, row, own=own)
        text = f"A new session, a copy of {me.name} at row {made.upto}; it waits for what you write."
        return Done(text, session=ctx.run_idempotent(sessions.get, made.session_id))
    made = trees.fork_at(ctx.mesh, me.id, name or _NAME, row, prompt, own=own)
    return _made(ctx, made.id, f"Forked {made.name} at row {made.upto}", is_running=prompt is not None)


def _made(ctx: CommandContext, child: AgentId, text: str, *, is_running: bool) -> Done:
    if is_running:
        ctx.ensure_served()
        return Done(f"{text}.", goto=child)
    return Done(f"{text}; it waits for what you write.", goto=child)


def _refuse_in_capture(ctx: CommandContext) -> None:
    if ctx.run_idempotent(person.is_capturing, ctx.in_view):
        raise UsageError("a capture is open, and /fork makes a child of it", hint="/cancel ends it; the text stays.")
