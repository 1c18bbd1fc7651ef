"""Carries out /fork: from captured text, from a prompt, or from an earlier message."""

from __future__ import annotations

import re

from agentmesh.app import trees
from agentmesh.app.schema_file import read_schema
from agentmesh.domain.errors import UsageError
from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import Agent
from agentmesh.domain.shape import SAME, Shape
from agentmesh.domain.states import AgentStatus
from agentmesh.store import agents, person, sessions, travel
from agentmesh.tui.commands import attachments
from agentmesh.tui.commands.calls import Done
from agentmesh.tui.commands.context import CommandContext

OWN = "--own"
"""The first argument of a fork with a tree of its own."""
_SHAPE = ("--model", "--tools", "--context", "--type", "--effort", "--schema", "--check")
_NAME = "fork"
"""The name of a child that was given none."""


def fork(ctx: CommandContext, *args: str) -> Done:
    """Make a child and go to it; ``args``: ``--own``, the shape, ``@row``, name and prompt; each may be absent.

    A prompt makes it run; without one it gets what was captured, or is idle. With ``--own`` it has a tree of its own.
    """
    own = True if args and args[0] == OWN else None
    shape, rest = _shape(args[1:] if own else args)
    point, (name, prompt) = _parts(rest)
    if shape != Shape() and (point is not None or ctx.run_idempotent(person.is_capturing, ctx.in_view)):
        raise UsageError(
            f"{', '.join(_SHAPE[:-1])} and {_SHAPE[-1]} go neither with @row nor with a capture",
            hint="Fork first, then fork that child: /fork --model NAME name prompt",
        )
    if point is not None:
        return _fork_at(ctx, point, name, prompt, own)
    if prompt is None and shape == Shape() and not (own and not ctx.run_idempotent(person.is_capturing, ctx.in_view)):
        _refuse_own_capture(own)
        child = ctx.run(person.fork_captured, ctx.in_view, name or _NAME)
        made, remark = ctx.run_idempotent(agents.get, child), ""
    else:
        _refuse_in_capture(ctx)
        made, remark = fork_with(ctx, name or _NAME, prompt, own=own, shape=shape)
    where = ", with a tree of its own" if own else ""
    cache = ctx.run_idempotent(agents.fork_cache, made.id)
    where += f" ({cache})" if cache else ""
    is_running = made.status == AgentStatus.RUNNING
    return _made(ctx, made.id, f"Forked {made.name}{where}", is_running=is_running, remark=remark)


def task(ctx: CommandContext, kind: str, prompt: str) -> Done:
    """Start a sub-agent of a type below the agent in view; its report comes to that agent as mail."""
    made, remark = fork_with(ctx, _named(kind, prompt), prompt, shape=Shape(type=kind), report=True)
    ctx.ensure_served()
    return Done(f"Started {made.name}; its report comes as a message. {remark}".rstrip())


def fork_with(
    ctx: CommandContext,
    name: str,
    prompt: str | None,
    *,
    words: str | None = None,
    own: bool | None = None,
    shape: Shape = SAME,
    report: bool = False,
) -> tuple[Agent, str]:
    """Make a child of the agent in view; return it, and a remark if its model cannot see the images of its prompt.

    ``words``: the part of the prompt whose ``@names`` are images; None is all of it. The others: see ``trees.fork``,
    which takes no images, so a prompt with images follows as the first message.
    """
    images = attachments.of(ctx, ctx.in_view, (prompt or "") if words is None else words).references
    child = trees.fork(ctx.mesh, ctx.in_view, name, None if images else prompt, own=own, shape=shape, report=report)
    if prompt is not None and images:
        ctx.send(ctx.in_view if report else None, child, prompt, images)
    made = ctx.run_idempotent(agents.get, child)
    return made, attachments.remark_on(ctx, made.model) if images else ""


def _named(kind: str, prompt: str) -> str:
    """Return a name made from the type and the first words; never the type's own, which ``@`` would take for it."""
    words = re.findall(r"[a-z0-9]+", prompt.lower())[:4]
    return "-".join([re.sub(r"[^a-z0-9]+", "-", kind.lower()).strip("-"), *(words or ["1"])])[:31].strip("-")


def _refuse_own_capture(own: bool | None) -> None:
    if own:
        raise UsageError("a capture is open, and its fork shares the files", hint="/cancel ends it; the text stays.")


def _shape(args: tuple[str, ...]) -> tuple[Shape, tuple[str, ...]]:
    """Return the child's differences from its parent, with the form of its report, and the other arguments."""
    given: dict[str, str] = {}
    while args and args[0] in _SHAPE:
        given[args[0]], args = args[1], args[2:]
    tools, file = given.get("--tools"), given.get("--schema")
    shape = Shape(
        given.get("--model"),
        tools.split(",") if tools else None,
        given.get("--context"),
        read_schema(file) if file is not None else None,
        given.get("--check"),
        type=given.get("--type"),
        effort=given.get("--effort"),
    )
    return shape, args


def _parts(args: tuple[str, ...]) -> tuple[str | None, tuple[str | None, str | None]]:
    point = args[0] if args and args[0].startswith("@") else None
    name, prompt, *_ = (*(args if point is None else args[1:]), None, None)
    return point, (name, prompt)


def _fork_at(ctx: CommandContext, point: str, name: str | None, prompt: str | None, own: bool | None) -> Done:
    """Make a child that begins where the agent in view was at a row (``@12``), and go to it.

    ``@`` lists the places. A dead agent has no new children, so a new session begins with a copy of it.
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


def _made(ctx: CommandContext, child: AgentId, text: str, *, is_running: bool, remark: str = "") -> Done:
    if is_running:
        ctx.ensure_served()
        return Done(f"{text}. {remark}".rstrip(), goto=child)
    return Done(f"{text}; it waits for what you write.", goto=child)


def _refuse_in_capture(ctx: CommandContext) -> None:
    if ctx.run_idempotent(person.is_capturing, ctx.in_view):
        raise UsageError("a capture is open, and /fork makes a child of it", hint="/cancel ends it; the text stays.")
