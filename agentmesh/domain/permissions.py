"""What agents may do without asking: rules, modes, and how one call is judged.

A set of rules is a stack of layers: the user's own at the bottom, and one more for each agent type on the way down to
the agent. A layer can only take away: see :func:`intersect`. Who is asked, and how, is not decided here.
"""

from __future__ import annotations

import fnmatch
import functools
import glob
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from agentmesh.domain.pathglob import covers
from agentmesh.domain.shell import ShellReading
from agentmesh.domain.states import PermissionMode
from agentmesh.domain.urls import canonical


class Decision(StrEnum):
    """What a rule says, and what is decided about a call."""

    DENY = "deny"
    ASK = "ask"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a user, a project or an agent type."""

    effect: Decision
    tool: str
    """A tool's name, or a pattern of names. ``read`` speaks of all reading of files, ``write`` and ``edit`` are one."""
    pattern: str = "*"
    """Of paths (``src/**``, ``*.pem`` at any depth, ``/etc/**``), commands (``git log *``), URLs, types of sub-agents
    (for ``task``), skills, else of arguments."""


@functools.lru_cache(maxsize=1024, typed=True)
def _rule(effect: Any, tool: Any, pattern: Any) -> Rule:
    """Return a stored rule; cached, because all rules of an agent are read for each of its calls."""
    return Rule(Decision(effect), str(tool), str(pattern))


Layer = tuple[Rule, ...]

GENERAL_PURPOSE = "general-purpose"
"""The type of a sub-agent for which none is named."""


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
    """What was decided about a call, and why in words for people and models."""

    decision: Decision
    reason: str
    outside: bool = False
    """Allowed, and it leads outside the working directory: the tool must be told so."""
    approved: bool = False
    """A person, a rule or the mode allowed every part of the call; False where a part is only taken to read."""
    allowed_by: PermissionMode | None = None
    """The most careful mode that would allow what was not allowed; None where no mode does."""
    always: tuple[Rule, ...] = ()
    """Of a call that asks: the rules that would allow it, and what is like it, for the whole session."""


class Refusal(NamedTuple):
    """The words of a refusal."""

    message: str
    hint: str


def refusal(verdict: Verdict, tool: str) -> Refusal:
    """Return what to tell an agent whose call would ask while nobody can answer, or is denied."""
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
    session: Layer = (),
    free: Collection[str] = (),
) -> Verdict:
    """Decide about one call.

    ``session`` is what a person has allowed for good: it turns asking into allowing, never a denial. ``shell`` takes a
    command apart; ``locate`` resolves a path, relative when it is inside the working directory, absolute when it is
    not. A call with several parts (a command line) is as allowed as its least allowed part. ``free`` are further tools
    that change nothing: allowed where no rule speaks of them.
    """
    parts = _parts(tool, arguments, shell, locate)
    if tool in free:
        parts = [replace(part, free=True) for part in parts]
    verdict = _worst(mode, parts, rules, session)
    if verdict.decision is Decision.ALLOW:
        return replace(verdict, outside=True) if any(part.outside for part in parts) else verdict
    if verdict.decision is Decision.ASK:
        asking = (part for part in parts if _judge_part(mode, part, rules, session).decision is Decision.ASK)
        verdict = replace(
            verdict,
            outside=any(part.outside for part in parts),
            always=tuple(dict.fromkeys(_like(part) for part in asking)),
        )
    careful_first = (PermissionMode.ASK, PermissionMode.EDITS, PermissionMode.ALL)
    allowing = (other for other in careful_first if _worst(other, parts, rules, session).decision is Decision.ALLOW)
    return replace(verdict, allowed_by=next(allowing, None))


def says(rules: Permissions, tool: str, text: str) -> Decision | None:
    """Return what rules alone say of a call that is no command and names no path; None leaves it to the mode."""
    return _said(rules, _Part(frozenset({tool}), text))


_READING = frozenset({"read", "glob", "grep"})
_WRITING = frozenset({"write", "edit"})
_FREE = frozenset({"fork", "send", "wait", "kill", "list_agents", "task", "ask_user", "todo_write", "skill"})
_SUBCOMMAND = re.compile(
    r"(apt|apt-get|brew|bundle|cargo|docker|dotnet|gh|git|go|gradle|helm|hg|kubectl|make|mix|mvn|npm|npx|pip|pip3|pnpm|"
    r"poetry|podman|rustup|svn|systemctl|terraform|uv|yarn) [a-z][a-z:-]*(?= |$)"
)
"""The start of a command whose first word takes subcommands: ``git commit``. What ``rm`` takes are files."""
_HOST = re.compile(r"https?://[^/?#\s]+")
_STRICTNESS = {Decision.DENY: 0, Decision.ASK: 1, Decision.ALLOW: 2}


@dataclass(frozen=True, slots=True)
class _Part:
    """One thing that a call does, as rules see it."""

    tools: frozenset[str]
    """Names under which rules speak of it."""
    text: str
    """What the patterns of rules are compared with."""
    also: tuple[str, ...] = ()
    """Further texts that deny and ask rules are compared with."""
    path: bool = False
    free: bool = False
    """Changes nothing outside the mesh: allowed where no rule speaks of it, in every mode."""
    exact: bool = False
    """May run what its words do not say: only a rule for everything, or for just these words, allows it."""
    opaque: bool = False
    """Not understood: deny rules cannot be compared with it."""
    only_restricts: bool = False
    """Stands for a side of another part: deny and ask rules count, nothing else."""
    why: str = ""
    """Why it is not free."""
    outside: bool = False


def _parts(
    tool: str, arguments: Mapping[str, Any], shell: Callable[[str], ShellReading], locate: Callable[[str], str]
) -> list[_Part]:
    if tool in _READING or tool in _WRITING:
        path = locate(str(arguments.get("path") or "."))
        outside = path.startswith("/")
        why = f"{path} is outside the working directory" if outside else f"it changes {path}"
        names = _WRITING if tool in _WRITING else frozenset({tool, "read"})
        return [_Part(names, path, path=True, free=tool in _READING and not outside, why=why, outside=outside)]
    if tool == "bash":
        return _shell_parts(shell(str(arguments.get("command") or "")), locate)
    if tool == "web_fetch":
        url = str(arguments.get("url") or "")
        return [_Part(frozenset({tool}), url, (canonical(url),), why="it reaches into the network")]
    if tool == "task":
        text = _task_type(arguments)
    elif tool == "skill":
        text = str(arguments.get("name") or "").strip().lower()
    else:
        text = json.dumps(dict(arguments), sort_keys=True, default=str, ensure_ascii=False)
    return [_Part(frozenset({tool}), text, free=tool in _FREE, why="no rule allows this tool")]


def _task_type(arguments: Mapping[str, Any]) -> str:
    """Return the type of sub-agent that a task is for; none where an agent goes on, which was judged when it began."""
    named = str(arguments.get("subagent_type") or "").strip().lower()
    return named or ("" if arguments.get("agent_id") else GENERAL_PURPOSE)


def _shell_parts(reading: ShellReading, locate: Callable[[str], str]) -> list[_Part]:
    bash = frozenset({"bash"})
    parts: list[_Part] = []
    for found in reading.parts:
        own = _Part(bash, found.text, found.also, free=found.read_only, exact=found.exact_only, why=found.reason)
        parts.append(own)
        for names, paths in ((frozenset({"read"}), found.reads), (_WRITING, found.writes)):
            parts += [_Part(names, locate(path), path=True, free=True, only_restricts=True) for path in paths]
    if reading.problem:
        parts.append(_Part(bash, reading.command, exact=True, opaque=True, why=reading.problem))
    return parts


def _worst(mode: PermissionMode, parts: list[_Part], rules: Permissions, session: Layer) -> Verdict:
    verdicts = [_judge_part(mode, part, rules, session) for part in parts]
    nothing = Verdict(Decision.ALLOW, "it does nothing")
    return min(verdicts, key=lambda verdict: _STRICTNESS[verdict.decision], default=nothing)


def _judge_part(mode: PermissionMode, part: _Part, rules: Permissions, session: Layer) -> Verdict:
    verdict = _judge_by_mode(mode, part, rules)
    if verdict.decision is Decision.ASK and _layer_says(session, part) is Decision.ALLOW:
        return Verdict(Decision.ALLOW, "it was allowed for the whole session")
    return verdict


def _like(part: _Part) -> Rule:
    """Return the rule that allows a part and what is like it: a command with its subcommand, a folder, a host."""
    if part.tools == _WRITING or part.path:
        folder, _, name = part.text.rpartition("/")
        pattern = f"{glob.escape(folder)}/**" if folder else glob.escape(name)
        return Rule(Decision.ALLOW, "write" if part.tools == _WRITING else "read", pattern)
    tool = next(iter(part.tools))
    if tool == "bash":
        subcommand = None if part.exact else _SUBCOMMAND.match(part.text)
        exact = part.text if part.exact else glob.escape(part.text)
        return Rule(Decision.ALLOW, tool, f"{subcommand[0]} *" if subcommand else exact)
    host = _HOST.match(part.text) if tool == "web_fetch" else None
    return Rule(Decision.ALLOW, tool, f"{host[0]}/*" if host else "*")


def _judge_by_mode(mode: PermissionMode, part: _Part, rules: Permissions) -> Verdict:
    said = _said(rules, part)
    if said is Decision.DENY:
        return Verdict(Decision.DENY, f"a rule denies {_shown(part)}")
    if part.only_restricts and said is not Decision.ASK:
        return Verdict(Decision.ALLOW, "no rule is against it")
    if part.opaque and _denies(rules, part):
        decision = Decision.DENY if mode is PermissionMode.PLAN else Decision.ASK
        return Verdict(decision, f"{part.why}, so the rules that deny commands cannot be applied")
    if mode is PermissionMode.PLAN:
        granted = said is Decision.ALLOW and not part.tools & (_WRITING | {"bash"})
        if granted or (part.free and said is not Decision.ASK):
            return Verdict(Decision.ALLOW, "it only reads")
        return Verdict(Decision.DENY, f"mode plan only reads, and {_why(part, said)}")
    if mode is PermissionMode.ALL:
        return Verdict(Decision.ALLOW, "mode all allows it")
    if mode is PermissionMode.EDITS and part.tools == _WRITING and not part.outside and not part.only_restricts:
        return Verdict(Decision.ALLOW, "mode edits allows it")
    if said is Decision.ALLOW:
        return Verdict(Decision.ALLOW, "a rule allows it")
    if part.free and said is None:
        return Verdict(Decision.ALLOW, "it only reads")
    return Verdict(Decision.ASK, _why(part, said))


def _why(part: _Part, said: Decision | None) -> str:
    return f"a rule asks before {_shown(part)}" if said is Decision.ASK else part.why


def _shown(part: _Part) -> str:
    text = part.text if len(part.text) <= 80 else part.text[:79] + "…"
    return f"`{text}`"


def _said(rules: Permissions, part: _Part) -> Decision | None:
    """Return what the layers together say of a part; None leaves it to the mode."""
    said = [_layer_says(layer, part) for layer in rules.layers]
    for strict in (Decision.DENY, Decision.ASK):
        if strict in said:
            return strict
    if said[0] is not Decision.ALLOW:
        return None  # what the user's own rules do not allow, no further layer can
    for layer, one in zip(rules.layers, said, strict=True):
        if one is None and any(rule.effect is Decision.ALLOW and _speaks_of(rule, part) for rule in layer):
            return None  # this layer allows something of the tool, and this is not it
    return Decision.ALLOW


def _layer_says(layer: Layer, part: _Part) -> Decision | None:
    said = {rule.effect for rule in layer if _speaks_of(rule, part) and _matches(rule, part)}
    return min(said, key=_STRICTNESS.__getitem__, default=None)


def _denies(rules: Permissions, part: _Part) -> bool:
    return any(rule.effect is Decision.DENY and _speaks_of(rule, part) for layer in rules.layers for rule in layer)


def _speaks_of(rule: Rule, part: _Part) -> bool:
    return _names_any(rule.tool, part.tools)


@functools.lru_cache(maxsize=1024)
def _names_any(pattern: str, tools: frozenset[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for name in tools)


def _matches(rule: Rule, part: _Part) -> bool:
    if part.path:
        return covers(rule.pattern, part.text, widely=rule.effect is not Decision.ALLOW)
    if rule.effect is not Decision.ALLOW:
        texts = (part.text, *part.also)
        return any(fnmatch.fnmatchcase(text, rule.pattern) or _starts(text, rule.pattern) for text in texts)
    if rule.pattern == "*" or rule.pattern == part.text:
        return True
    if part.exact:
        return False
    # `git log *` also allows `git log`.
    return fnmatch.fnmatchcase(part.text, rule.pattern) or part.text == rule.pattern.removesuffix(" *")


def _starts(text: str, pattern: str) -> bool:
    """Whether a command starts with the pattern's words: a deny of ``rm`` means every ``rm``."""
    return fnmatch.fnmatchcase(text, f"{pattern.removesuffix(' *')} *") or text == pattern.removesuffix(" *")
