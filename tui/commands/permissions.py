"""What an answer to a request and /permissions do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from agentmesh.domain.errors import RequestOver, UsageError
from agentmesh.store import agents, requests, sessions
from agentmesh.tui.commands.calls import Done
from agentmesh.tui.commands.context import Doing
from agentmesh.tui.widgets.formats import rule_text

if TYPE_CHECKING:
    from agentmesh.domain.rows import Request


def answer(doing: Doing, request: str, words: str) -> Done:
    """Answer a request."""
    by = f"{doing.mesh.place.os_user} (terminal UI)"
    said: dict[str, Any] = json.loads(words)
    try:
        doing.insist(requests.answer, UUID(request), said, by)
    except RequestOver:
        # An attempt before this one may have arrived although nobody said so.
        now = doing.read(requests.resolve, request)
        if (now.answer, now.answered_by) != (said, by):
            raise
    doing.have_it_run()
    return Done(_told(doing.read(requests.resolve, request), said))


def _told(request: Request, said: Mapping[str, Any]) -> str:
    if request.kind == "question":
        return f"Answered {request.name}."
    if said["decision"] == "no":
        return f"Refused {request.tool} for {request.name}."
    if said["decision"] == "once":
        edited = " as you have edited it" if "arguments" in said else ""
        return f"Allowed {request.tool} for {request.name}, once{edited}."
    rules = ", ".join(rule_text(rule) for rule in request.rules)
    return f"Allowed from now on, in this session: {rules}. /permissions shows it and takes it back."


def permissions(doing: Doing, words: str | None = None) -> Done:
    """Show what the agent in view may do, or take back what was always allowed."""
    if words is not None:
        return _forget(doing, words.lower().split())
    session = doing.read(sessions.get, doing.session.id)
    me = doing.read(agents.get, doing.in_view)
    always = doing.read(requests.rules, doing.session.id)
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


def _forget(doing: Doing, words: list[str]) -> Done:
    usage = "Usage: /permissions, /permissions forget N, /permissions forget all"
    if len(words) != 2 or words[0] != "forget" or not (words[1] == "all" or words[1].isdecimal()):
        raise UsageError("/permissions forgets one of its numbers, or all.", hint=usage)
    place = None if words[1] == "all" else int(words[1])
    gone = doing.run(requests.forget_rules, doing.session.id, place)
    if place is not None and not gone:
        raise UsageError(f"Nothing has the number {place}.", hint="/permissions lists what was always allowed.")
    return Done(f"Forgot {gone} rule{'s' * (gone != 1)}." if gone else "Nothing was always allowed.")
