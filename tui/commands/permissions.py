"""Carries out the answer to a request, and /permissions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from agentmesh.domain import fan_out
from agentmesh.domain.errors import RequestOver, UsageError
from agentmesh.domain.figures import plural
from agentmesh.store import agents, requests, sessions
from agentmesh.tui.commands.calls import Done
from agentmesh.tui.commands.context import CommandContext
from agentmesh.tui.widgets.formats import rule_text

if TYPE_CHECKING:
    from agentmesh.domain.rows import Request


def answer(ctx: CommandContext, ids: str, words: str) -> Done:
    """Answer requests, all with the same words."""
    said: dict[str, Any] = json.loads(words)
    chosen = ids.split()
    if len(chosen) == 1:
        _answer_one(ctx, ids, said)
        ctx.ensure_served()
        return Done(_outcome_text(ctx.run_idempotent(requests.resolve, ids), said))
    late = 0
    for request in chosen:
        try:
            _answer_one(ctx, request, said)
        except RequestOver:
            late += 1
    ctx.ensure_served()
    verb = "Refused" if said["decision"] == "no" else "Allowed"
    others = f"; {plural(late, 'other')} had an answer already" if late else ""
    return Done(f"{verb} {plural(len(chosen) - late, 'request')}{others}.")


def _answer_one(ctx: CommandContext, request: str, said: Mapping[str, Any]) -> None:
    """Answer a request; raise RequestOver if somebody else was first."""
    by = f"{ctx.mesh.place.os_user} (terminal UI)"
    try:
        ctx.run_persistently(requests.answer, UUID(request), said, by)
    except RequestOver:
        # An attempt before this one may have arrived although nobody said so.
        now = ctx.run_idempotent(requests.resolve, request)
        if (now.answer, now.answered_by) != (said, by):
            raise


def _outcome_text(request: Request, said: Mapping[str, Any]) -> str:
    if request.kind == "question":
        return f"Answered {request.name}."
    if request.agents is not None and not request.rules:
        return fan_out.answered(request.name, request.agents, said["decision"])
    if said["decision"] == "no":
        return f"Refused {request.tool} for {request.name}."
    if said["decision"] == "once":
        edited = " as you have edited it" if "arguments" in said else ""
        return f"Allowed {request.tool} for {request.name}, once{edited}."
    rules = ", ".join(rule_text(rule) for rule in said.get("rules") or request.rules)
    return f"Allowed from now on, in this session: {rules}. /permissions shows it and takes it back."


def permissions(ctx: CommandContext, words: str | None = None) -> Done:
    """Show what the agent in view may do, or take back what was always allowed."""
    if words is not None:
        return _forget(ctx, words.lower().split())
    session = ctx.run_idempotent(sessions.get, ctx.session.id)
    me = ctx.run_idempotent(agents.get, ctx.in_view)
    always = ctx.run_idempotent(requests.rules, ctx.session.id)
    lines = [f"Mode {session.permission_mode}: Shift+Tab or /mode changes it.", "", f"Rules of {me.name}:"]
    lines += list(_layers(me.permissions)) or ["  none"]
    lines += ["", "Always allowed in this session:"]
    lines += [f"  {place}  {rule_text(rule)}" for place, rule in enumerate(always, 1)] or ["  nothing"]
    if always:
        lines += ["", "/permissions forget 1 takes the first back, /permissions forget all takes all."]
    return Done("\n".join(lines))


def _layers(layers: Any) -> Iterator[str]:
    """Yield the rules of an agent: the user's own, then what each type on the way down to it adds."""
    for depth, layer in enumerate(layers or ()):
        if layer:
            yield (
                "  of the configuration:"
                if depth == 0
                else f"  of a type of sub-agents, which only restrict ({depth}):"
            )
        yield from (f"    {rule['effect']:<5}  {rule_text(rule)}" for rule in layer)


def _forget(ctx: CommandContext, words: list[str]) -> Done:
    usage = "Usage: /permissions, /permissions forget N, /permissions forget all"
    if len(words) != 2 or words[0] != "forget" or not (words[1] == "all" or words[1].isdecimal()):
        raise UsageError("/permissions forgets one of its numbers, or all.", hint=usage)
    place = None if words[1] == "all" else int(words[1])
    gone = ctx.run(requests.forget_rules, ctx.session.id, place)
    if place is not None and not gone:
        raise UsageError(f"Nothing has the number {place}.", hint="/permissions lists what was always allowed.")
    return Done(f"Forgot {plural(gone, 'rule')}." if gone else "Nothing was always allowed.")
