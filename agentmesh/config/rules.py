"""Permission rules as people write them: ``bash(git log *)``, ``read(*.pem)``, ``write``."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agentmesh.config.documents import Problem
from agentmesh.config.forms import BadValue
from agentmesh.config.mcp import may_mean
from agentmesh.domain.pathglob import BadPattern, PathPattern
from agentmesh.domain.permissions import Decision, Permissions, Rule, intersect
from agentmesh.domain.text import one_line

_RULE: Final = re.compile(r"\s*([\w.*?-]+)\s*(?:\((.*)\))?\s*", re.DOTALL)
_OF_PATHS: Final = frozenset({"read", "write", "edit", "glob", "grep"})
_SHOULD: Final = "should be a rule: TOOL or TOOL(PATTERN), as in bash(git log *)"


@dataclass(frozen=True, slots=True)
class SourcedRule:
    """A rule, and the file that contains it."""

    rule: Rule
    source: str
    from_project: bool = False


def parsed(effect: Decision, text: str) -> Rule:
    """Parse a rule; raise BadValue. A ``~/`` before a path is the home directory."""
    found = _RULE.fullmatch(text)
    if found is None:
        raise BadValue(f"{_SHOULD}; {one_line(text, 60)!r} is not a rule")
    tool, pattern = found[1], found[2]
    if pattern is None:
        return Rule(effect, tool)
    pattern = pattern.strip()
    if not pattern:
        raise BadValue(f"has a rule with an empty pattern: {tool}(); for every call write {tool}")
    if tool in _OF_PATHS:
        pattern = _path(pattern)
    return Rule(effect, tool, pattern)


def check(text: str) -> None:
    """Raise BadValue if a text is not a rule."""
    parsed(Decision.DENY, text)


def sourced(table: Mapping[Decision, Sequence[str]], source: str, *, from_project: bool) -> Iterator[SourcedRule]:
    """Yield the rules of a file's table of permissions, in the order in which they are judged."""
    for effect in (Decision.DENY, Decision.ASK, Decision.ALLOW):
        for text in table[effect]:
            yield SourcedRule(parsed(effect, text), source, from_project)


def rule_text(rule: Rule) -> str:
    """Return a rule as a person writes it."""
    return rule.tool if rule.pattern == "*" else f"{rule.tool}({rule.pattern})"


def split(text: str) -> Iterator[str]:
    """Yield the entries of a comma-separated list; commas inside brackets belong to a pattern."""
    depth, entry = 0, ""
    for character in text:
        depth = max(depth + {"(": 1, ")": -1}.get(character, 0), 0)
        if character == "," and not depth:
            yield entry.strip()
            entry = ""
        else:
            entry += character
    yield entry.strip()


def permissions(rules: Iterable[SourcedRule]) -> Permissions:
    """Return the permissions of a session's root: the user's rules, further restricted by the project's."""
    known = tuple(rules)
    own = Permissions.of(each.rule for each in known if not each.from_project)
    return intersect(own, [each.rule for each in known if each.from_project])


def unmatched(rules: Iterable[SourcedRule], known: Sequence[str]) -> list[Problem]:
    """Return a problem for each rule that matches no existing tool."""
    problems = []
    for each in rules:
        tool = each.rule.tool
        if not any(may_mean(tool, name) for name in known):
            close = difflib.get_close_matches(tool.lower(), known, n=1)
            meant = f"did you mean {close[0]}?" if close else f"the tools are {', '.join(known)}"
            rule = one_line(f"{each.rule.effect.value} {rule_text(each.rule)}", 80)
            problems.append(Problem(each.source, f"the rule {rule} matches no tool; {meant}"))
    return problems


def _path(pattern: str) -> str:
    expanded = os.path.expanduser(pattern) if pattern.startswith("~/") else pattern
    try:
        PathPattern.parse(expanded)
    except BadPattern as error:
        raise BadValue(f"has a pattern that cannot be used, {one_line(pattern, 60)!r}: {error}") from error
    return expanded
