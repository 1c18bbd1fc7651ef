"""What agents may do without asking: rules, modes, and how one call is judged.

A set of rules is a stack of layers: the user's own at the bottom, and one more for each agent type on the way down to
the agent. A layer can only restrict: see :func:`intersect`. This module does not decide which person is asked, or how.
"""

from __future__ import annotations

import functools
import glob
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from agentmesh.domain.command_prefixes import command_prefix
from agentmesh.domain.matching import allows, names_any, restricts
from agentmesh.domain.parts import SEARCHING, WRITING, CallPart, parts_of
from agentmesh.domain.shell import ShellReading
from agentmesh.domain.states import PermissionMode
from agentmesh.domain.urls import parse_url


class Decision(StrEnum):
    """The effect of a rule, and the decision about a call."""

    DENY = "deny"
    ASK = "ask"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a user, a project or an agent type."""

    effect: Decision
    tool: str
    """A tool's name, or a pattern of names. ``read`` covers all reading of files; ``write`` and ``edit`` are one."""
    pattern: str = "*"
    """It matches paths (``src/**``, ``*.pem`` at any depth, ``/etc/**``), commands (``git log *``), URLs, skills, the
    types of sub-agents (for ``task``), the agent (for ``merge``), and for other tools the arguments."""


@functools.lru_cache(maxsize=1024, typed=True)
def _rule(effect: Any, tool: Any, pattern: Any) -> Rule:
    """Return a stored rule; cached, because all rules of an agent are read for each of its calls."""
    return Rule(Decision(effect), str(tool), str(pattern))


Layer = tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Permissions:
    """The rules of one agent; stored in its row."""

    layers: tuple[Layer, ...] = ((),)
    """The user's own first; never empty."""

    @classmethod
    def of(cls, rules: Iterable[Rule]) -> Permissions:
        """Return the permissions of a root agent with these rules."""
        return cls((tuple(rules),))

    def to_json(self) -> list[list[dict[str, str]]]:
        """Return the form in which a row holds them."""
        return [
            [{"effect": rule.effect.value, "tool": rule.tool, "pattern": rule.pattern} for rule in layer]
            for layer in self.layers
        ]

    @classmethod
    def from_json(cls, value: Any) -> Permissions:
        """Return the permissions that a row holds; ValueError for anything that :meth:`to_json` did not make."""
        try:
            layers = tuple(
                tuple(_rule(rule["effect"], rule["tool"], rule["pattern"]) for rule in layer) for layer in value
            )
        except (TypeError, KeyError) as error:
            raise ValueError("these are no permissions") from error
        return cls(layers or ((),))


def intersect(parent: Permissions, own: Sequence[Rule]) -> Permissions:
    """Return a child's permissions: whatever its own rules say, never more than its parent's."""
    return Permissions((*parent.layers, tuple(own))) if own else parent


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision about a call, with its reason in words for people and models."""

    decision: Decision
    reason: str
    outside: bool = False
    """Allowed, and it leads outside the working directory: the tool must know."""
    approved: bool = False
    """A person, a rule or the mode allowed every part of the call; False if a part was only judged to read."""
    allowed_by: PermissionMode | None = None
    """The most careful mode that would allow the refused call; None if no mode would."""
    always: tuple[Rule, ...] = ()
    """If the call asks: the rules that would allow it, and calls like it, for the whole session."""
    place: str | None = None
    """Where the path of the call led, as rules see it: only that file was judged. None for a call without a path."""


class Refusal(NamedTuple):
    """The words of a refusal."""

    message: str
    hint: str


def refusal(verdict: Verdict, tool: str) -> Refusal:
    """Return the words for an agent whose call is denied, or would ask while nobody can answer."""
    message = f"{tool} was refused: {verdict.reason}."
    if verdict.allowed_by is None:
        return Refusal(message, "No mode allows it; do without it, and do not try it in another form.")
    return Refusal(
        message,
        f"Do without it, and say so; the user can allow it with --permission-mode {verdict.allowed_by.value}.",
    )


def judge(
    mode: PermissionMode,
    tool: str,
    arguments: Mapping[str, Any],
    rules: Permissions,
    shell: Callable[[str], ShellReading],
    locate: Callable[[str], str],
    root: str,
    session: Layer = (),
    free: Collection[str] = (),
    *,
    own_tree: bool = False,
) -> Verdict:
    """Decide about one call.

    ``session``: rules that a person allowed for good; they turn asking into allowing, never a denial. ``shell`` takes a
    command apart; ``locate`` resolves a path, relative when it is inside the working directory ``root``, absolute when
    it is not. ``own_tree`` says that ``root`` is the agent's own working tree. A call with several parts (a command
    line) is as allowed as its least allowed part. ``free`` are further tools that change nothing: allowed unless a rule
    covers them.
    """
    parts = parts_of(tool, arguments, shell, locate, root, free, own_tree=own_tree)
    verdict = _judge_parts(mode, parts, rules, session)
    outside = any(part.outside for part in parts)
    if verdict.decision is Decision.ALLOW:
        return replace(verdict, outside=outside)
    careful_first = (PermissionMode.ASK, PermissionMode.EDITS, PermissionMode.ALL)
    judged = ((other, _judge_parts(other, parts, rules, session)) for other in careful_first)
    allowed_by = next((other for other, found in judged if found.decision is Decision.ALLOW), None)
    return replace(verdict, allowed_by=allowed_by, outside=outside and verdict.decision is Decision.ASK)


def uncovered(
    tool: str,
    arguments: Mapping[str, Any],
    proposed: Layer,
    rules: Layer,
    shell: Callable[[str], ShellReading],
    locate: Callable[[str], str],
    root: str,
) -> str:
    """Return the first part of a call that the proposed rules allow and these do not; "" if these allow each."""
    parts = parts_of(tool, arguments, shell, locate, root)
    asked = (part for part in parts if not part.only_restricts and _layer_says(proposed, part) is Decision.ALLOW)
    return next((part.text or tool for part in asked if _layer_says(rules, part) is not Decision.ALLOW), "")


def says(rules: Permissions, tool: str, text: str) -> Decision | None:
    """Return the rules' decision about a call that is no command and names no path; None leaves it to the mode."""
    return _said(rules, CallPart(frozenset({tool}), text))


_STRICTNESS = {Decision.DENY: 0, Decision.ASK: 1, Decision.ALLOW: 2}


def _judge_parts(mode: PermissionMode, parts: list[CallPart], rules: Permissions, session: Layer) -> Verdict:
    judged = [(part, _judge_part(mode, part, rules, session)) for part in parts]
    nothing = Verdict(Decision.ALLOW, "it does nothing")
    worst = min((verdict for _, verdict in judged), key=lambda verdict: _STRICTNESS[verdict.decision], default=nothing)
    if worst.decision is Decision.ALLOW:
        return _together(mode, worst, judged)
    if worst.decision is Decision.ASK:
        return replace(worst, always=_always(judged))
    return worst


def _always(judged: list[tuple[CallPart, Verdict]]) -> tuple[Rule, ...]:
    """Return the rules that would allow a call: for the parts that ask, and for parts that cannot run beside them."""
    asking = [part for part, verdict in judged if verdict.decision is Decision.ASK]
    beside = [part for part, verdict in judged if not (verdict.approved or part.plain or part.only_restricts)]
    needed = beside if any(not part.free for part in asking) else []
    return tuple(dict.fromkeys(_like(part) for part, _ in judged if part in asking or part in needed))


def _together(mode: PermissionMode, verdict: Verdict, judged: list[tuple[CallPart, Verdict]]) -> Verdict:
    """Return the verdict about parts that are each allowed: whether they are approved, and may run beside each other.

    A part that was only judged to read runs behind a wall. A part that needs more would take the others out of it.
    """
    counting = [(part, verdict) for part, verdict in judged if not part.only_restricts]
    rest = [part for part, found in counting if not found.approved]
    approved = len(rest) < len(counting) and all(part.plain for part in rest)
    if approved or all(part.free for part, _ in counting):
        return replace(verdict, approved=approved)
    reason = "a rule allows part of it, and the rest is not simple enough to run with it"
    decision = Decision.DENY if mode is PermissionMode.PLAN else Decision.ASK
    return Verdict(decision, reason, always=tuple(dict.fromkeys(_like(part) for part in rest if not part.plain)))


def _judge_part(mode: PermissionMode, part: CallPart, rules: Permissions, session: Layer) -> Verdict:
    verdict = _judge_by_mode(mode, part, rules)
    waived = verdict.decision is Decision.ASK or (verdict.decision is Decision.ALLOW and not verdict.approved)
    in_plan = mode is PermissionMode.PLAN and part.tools & (WRITING | {"bash"})
    if waived and not in_plan and _layer_says(session, part) is Decision.ALLOW:
        return Verdict(Decision.ALLOW, "it was allowed for the whole session", approved=True)
    return verdict


def _like(part: CallPart) -> Rule:
    """Return the rule that allows a part and others like it: a command with its subcommand, a folder, a host."""
    if part.tools & SEARCHING:
        # The path is a directory: a rule for the one above would open its other files.
        pattern = "**" if part.text == "." else f"{glob.escape(part.text.rstrip('/'))}/**"
        return Rule(Decision.ALLOW, "read", pattern)
    if part.tools == WRITING or part.path:
        folder = part.text.rpartition("/")[0]
        pattern = f"{glob.escape(folder)}/**" if folder else glob.escape(part.text)
        return Rule(Decision.ALLOW, "write" if part.tools == WRITING else "read", pattern)
    tool = next(iter(part.tools))
    if tool == "bash":
        is_exact = part.exact or part.hazard
        prefix = "" if is_exact else command_prefix(part.text)
        exact = part.text if is_exact else glob.escape(part.text)
        return Rule(Decision.ALLOW, tool, f"{prefix} *" if prefix else exact)
    if tool == "web_fetch":
        url = parse_url(part.text)
        return Rule(Decision.ALLOW, tool, f"{url.site}/*" if url and not url.has_user else part.text)
    return Rule(Decision.ALLOW, tool)


def _judge_by_mode(mode: PermissionMode, part: CallPart, rules: Permissions) -> Verdict:
    said = _said(rules, part)
    if said is Decision.DENY:
        return Verdict(Decision.DENY, f"a rule denies {_shown(part)}")
    if part.only_restricts and said is not Decision.ASK:
        return Verdict(Decision.ALLOW, "no rule is against it")
    if part.opaque and _denies(rules, part):
        decision = Decision.DENY if mode is PermissionMode.PLAN else Decision.ASK
        return Verdict(decision, f"{part.why}, so the rules that deny commands cannot be applied")
    if mode is PermissionMode.PLAN:
        granted = said is Decision.ALLOW and not part.tools & (WRITING | {"bash"})
        if granted or (part.free and said is not Decision.ASK):
            return Verdict(Decision.ALLOW, "it only reads", approved=granted)
        return Verdict(Decision.DENY, f"mode plan only reads, and {_why(part, said)}")
    if mode is PermissionMode.ALL:
        return Verdict(Decision.ALLOW, "mode all allows it", approved=True)
    if mode is PermissionMode.EDITS and part.edits:
        return Verdict(Decision.ALLOW, "mode edits allows it", approved=True)
    if said is Decision.ALLOW:
        return Verdict(Decision.ALLOW, "a rule allows it", approved=True)
    if part.free and said is None:
        return Verdict(Decision.ALLOW, "it only reads")
    return Verdict(Decision.ASK, _why(part, said))


def _why(part: CallPart, said: Decision | None) -> str:
    return f"a rule asks before {_shown(part)}" if said is Decision.ASK else part.why


def _shown(part: CallPart) -> str:
    text = part.text if len(part.text) <= 80 else part.text[:79] + "…"
    return f"`{text}`"


def _said(rules: Permissions, part: CallPart) -> Decision | None:
    """Return the decision of all layers about a part; None leaves it to the mode."""
    said = [_layer_says(layer, part) for layer in rules.layers]
    for strict in (Decision.DENY, Decision.ASK):
        if strict in said:
            return strict
    if said[0] is not Decision.ALLOW:
        return None  # no further layer can allow what the user's own rules do not
    for layer, one in zip(rules.layers, said, strict=True):
        if one is None and any(rule.effect is Decision.ALLOW and _speaks_of(rule, part) for rule in layer):
            return None  # this layer allows some calls of the tool, but not this one
    return Decision.ALLOW


def _layer_says(layer: Layer, part: CallPart) -> Decision | None:
    said = {rule.effect for rule in layer if _speaks_of(rule, part) and _matches(rule, part)}
    return min(said, key=_STRICTNESS.__getitem__, default=None)


def _denies(rules: Permissions, part: CallPart) -> bool:
    return any(rule.effect is Decision.DENY and _speaks_of(rule, part) for layer in rules.layers for rule in layer)


def _speaks_of(rule: Rule, part: CallPart) -> bool:
    return names_any(rule.tool, part.tools)


def _matches(rule: Rule, part: CallPart) -> bool:
    return (allows if rule.effect is Decision.ALLOW else restricts)(rule.pattern, part)
