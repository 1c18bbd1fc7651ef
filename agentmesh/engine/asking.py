"""Which calls of a step a person decides about, and what happens with the answers.

All calls of a step that need a person are asked about at once, before the first of them runs. Then the calls run in
order, and one that still waits for its answer holds up those after it.

A verdict holds only for a moment: a call may make a link, or a person may change what is allowed, and then the same
words mean something else. So each call is judged again right before it runs, unless nothing could have happened since
the look.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from pydantic import BaseModel

from agentmesh.config.rules import rule_text
from agentmesh.domain.fan_out import Start
from agentmesh.domain.parts import COMMANDS
from agentmesh.domain.permissions import Decision, Permissions, Verdict, refusal, says
from agentmesh.domain.rows import Allowance, OpenCall
from agentmesh.domain.states import CallStatus
from agentmesh.engine import arguments, fan_out
from agentmesh.engine.fan_out import FanOut, Words
from agentmesh.engine.tool import Effect, Gate, Rights, Tool, ToolContext, ToolError


@dataclass(slots=True)
class Asked:
    """The result of a look at a step's calls."""

    requests: list[dict[str, Any]] = field(default_factory=list)
    """Requests to be stored: the calls to ask about."""
    settled: list[int] = field(default_factory=list)
    """Ordinals of calls that waited for an answer, and that a rule or the mode allows by now."""
    dropped: list[int] = field(default_factory=list)
    """Ordinals of calls that waited for an answer that nobody is there to give."""
    waiting: set[int] = field(default_factory=set)
    """Ordinals of calls that wait for an answer."""

    @property
    def is_news(self) -> bool:
        """Whether anything has to be stored."""
        return bool(self.requests or self.settled or self.dropped)


class Reading(NamedTuple):
    """A call's arguments, as its tool gets them and as rules see them, and a note for the model, if any."""

    args: BaseModel
    given: dict[str, Any]
    note: str | None


class Asking:
    """Judges the calls of one agent's step."""

    def __init__(
        self, tools: Mapping[str, Tool], gate: Gate, context: ToolContext, rights: Rights, words: Words
    ) -> None:
        """``words`` describes to a person the agents that calls would start."""
        self._tools = tools
        self._gate = gate
        self._context = context
        self._words = words
        self.rights = rights
        """The rights that it judges by; the session's part may change at any time."""
        self._readings: dict[int, Reading] = {}
        """By ordinal; the arguments of a call do not change."""
        self._fresh: dict[int, Verdict] = {}
        """Verdicts of the last look, by ordinal; kept only while nothing has happened that could change them."""

    def read(self, tool: Tool, call: OpenCall) -> Reading:
        """Return a call's arguments, or those that a person has put in their place; raise ToolError."""
        reading = self._readings.get(call.ordinal)
        if reading is None:
            reading = self._readings[call.ordinal] = _read(tool, call)
        own = self._context.own
        if own is not None and (refused := self._gate.misplaced(tool.name, reading.given, own)):
            raise refused
        return reading

    def look(self, calls: Sequence[OpenCall]) -> Asked:
        """Return which of the open calls must be asked about, which wait, and which no longer have to."""
        self.forget()
        found = Asked()
        unbegun = [call for call in calls if call.status in (CallStatus.OPEN, CallStatus.ASKING)]
        many = self._fan_out(unbegun)
        for call in unbegun:
            if call.approval:
                continue
            request = self._request(call)
            if many is not None and call.ordinal == many.ordinal:
                request = many.request(request, call, self._readings[call.ordinal].given, self._words)
            if request is None or not self.rights.allowance.attended:
                if call.asked:
                    (found.settled if request is None else found.dropped).append(call.ordinal)
                continue
            found.waiting.add(call.ordinal)
            if not call.asked or call.status == CallStatus.OPEN:
                found.requests.append(request)
        return found

    def renew(self, allowance: Allowance) -> bool:
        """Use this allowance from now on; return whether it differs from the one before."""
        if allowance == self.rights.allowance:
            return False
        self.rights = replace(self.rights, allowance=allowance)
        self.forget()
        return True

    def forget(self) -> None:
        """Judge every call again, because a call with effects has begun or time has passed in a wait."""
        self._fresh.clear()

    def admit(self, tool: Tool, call: OpenCall) -> Verdict:
        """Return the verdict under which a call may be made; raise ToolError if it may not be."""
        verdict = self._fresh.get(call.ordinal) or self._judge(tool, call)
        if call.approval is not None and verdict.decision is not Decision.DENY:
            # A yes to many agents is no yes to the rights of one of them.
            return (
                verdict if call.is_fan_out and verdict.decision is Decision.ALLOW else replace(verdict, approved=True)
            )
        if verdict.decision is Decision.ALLOW:
            return verdict
        message, hint = refusal(verdict, tool.name)
        if verdict.allowed_by is None:
            raise ToolError(message, hint, refused=True)
        how: dict[str, Any] = {"allow_with": f"--permission-mode {verdict.allowed_by.value}"}
        if verdict.decision is Decision.ASK:
            how["allow_rules"] = [rule_text(rule) for rule in verdict.always]
        raise ToolError(message, hint, refused=True, **how)

    def admitted(self, tool: Tool, call: OpenCall, context: ToolContext) -> ToolContext:
        """Return the context of a call that may be made, with its rights; raise ToolError if it may not be made."""
        verdict = self.admit(tool, call)
        # Only a person or the mode lets reading tools see files that a rule asks about; for a command, any approval
        # is enough.
        approved = verdict.approved if tool.name in COMMANDS else call.approval is not None
        return replace(
            context,
            outside=verdict.outside,
            approved=verdict.approved,
            judged=verdict.place,
            withheld=self._gate.withheld(tool.name, self.rights, self._context.project, approved=approved),
            forbidden=self._gate.forbidden(tool.name, self.rights, self._context.project),
            may_follow=lambda url: self._may_follow(tool, call, url),
        )

    def _may_follow(self, tool: Tool, call: OpenCall, url: str) -> bool:
        """Whether a call may go on to another URL: it is allowed, or a person said yes and no rule restricts it.

        What was allowed when the call began decides: it runs beside others, and this changes no state of ours.
        """
        given = {**self.read(tool, call).given, "url": url}
        verdict = self._judge_arguments(tool, given)
        if verdict.decision is Decision.ASK and call.approval is not None:
            return says(Permissions.from_json(self.rights.rules), tool.name, url) is None
        return verdict.decision is Decision.ALLOW

    def _judge(self, tool: Tool, call: OpenCall) -> Verdict:
        return self._judge_arguments(tool, self.read(tool, call).given)

    def _judge_arguments(self, tool: Tool, given: Mapping[str, Any]) -> Verdict:
        where = self._context
        return self._gate.judge(tool.name, given, self.rights, where.workdir, where.project)

    def _fan_out(self, calls: Sequence[OpenCall]) -> FanOut | None:
        """Return the question for a person before these calls start agents; None if they start few."""
        if not self.rights.allowance.attended or not self.rights.allowance.ask_agents:
            return None
        starting = [(call, start) for call in calls if (start := self._start(call)) is not None]
        return fan_out.found(starting, self.rights.allowance.ask_agents)

    def _start(self, call: OpenCall) -> Start | None:
        """Return the agents that a call would start; None if it starts none, also because it will be refused."""
        if (readable := self._readable(call)) is None:
            return None
        tool, given = readable
        start = self._gate.starts(tool.name, given, self._context)
        return start if start and self._judge(tool, call).decision is not Decision.DENY else None

    def _readable(self, call: OpenCall) -> tuple[Tool, dict[str, Any]] | None:
        """Return a call's tool and arguments; None if there is no such tool, or the arguments will be refused."""
        tool = self._tools.get(call.name)
        if tool is None:
            return None
        try:
            return tool, self.read(tool, call).given
        except ToolError:
            return None

    def _request(self, call: OpenCall) -> dict[str, Any] | None:
        """Return the question for a person about a call; None if it needs nobody, or will be refused anyway."""
        if (readable := self._readable(call)) is None:
            return None
        tool, given = readable
        asked = {"ordinal": call.ordinal, "tool": call.name, "arguments": given}
        verdict = self._fresh[call.ordinal] = self._judge(tool, call)
        if tool.effect is Effect.ASK and verdict.decision is not Decision.DENY:
            return {**asked, "kind": "question", "question": given["question"], "options": given.get("options")}
        if verdict.decision is Decision.ASK:
            rules = Permissions((verdict.always,)).to_json()[0]
            return {**asked, "kind": "approval", "reason": verdict.reason, "rules": rules}
        return None


def _read(tool: Tool, call: OpenCall) -> Reading:
    edited = (call.approval or {}).get("arguments")
    text = call.arguments if edited is None else json.dumps(edited, ensure_ascii=False)
    args, note = arguments.read(tool, text)
    if edited is not None:
        changed = f"the user has approved this call with other arguments: {text}"
        note = f"{changed} {note}" if note else changed
    return Reading(args, args.model_dump(), note)
