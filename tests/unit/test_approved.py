"""Which calls a person, a rule or the mode has approved; and which allow rules speak of an option that does harm."""

from __future__ import annotations

import re
from typing import Any

import pytest

from agentmesh.domain.permissions import Decision, Layer, Permissions, Rule, Verdict, judge
from agentmesh.domain.shell import ShellPart, ShellReading
from agentmesh.domain.states import PermissionMode

ASK, EDITS, ALL, PLAN = PermissionMode.ASK, PermissionMode.EDITS, PermissionMode.ALL, PermissionMode.PLAN
_READERS = re.compile(r"(git log|git diff|tail|wc|awk|sed|sort|find|cat)\b")
_HARM = re.compile(r"--?outp|--output|-delete|-exec| -o|/etc|\$|'w|system")
_PLAIN = re.compile(r"(tail|wc)( -[a-z0-9]+)*")


def _shell(command: str) -> ShellReading:
    """Read a pipeline of simple commands; what reads, is plain or does harm is fixed by the patterns above."""
    parts = []
    for text in command.split(" | "):
        hazard = bool(_READERS.match(text) and _HARM.search(text))
        reads = tuple(re.findall(r"secret\S*", text))
        parts.append(
            ShellPart(
                text,
                read_only=bool(_READERS.match(text)) and not hazard,
                reason="" if _READERS.match(text) and not hazard else "it may do more than read",
                reads=reads,
                plain=bool(_PLAIN.fullmatch(text)),
                hazard=hazard,
            )
        )
    return ShellReading(command, tuple(parts), plain="(" not in command)


def _rules(*texts: str) -> Permissions:
    return Permissions.of(Rule(Decision(text.split(" ", 2)[0]), *text.split(" ", 2)[1:]) for text in texts)


def _judge(
    tool: str, rules: Permissions | None = None, mode: PermissionMode = ASK, session: Layer = (), **arguments: object
) -> Verdict:
    return judge(mode, tool, arguments, rules or Permissions(), _shell, lambda path: path, "/w", session)


def _bash(command: str, *rules: str, mode: PermissionMode = ASK, session: Layer = ()) -> str:
    verdict = _judge("bash", _rules(*rules), mode, session, command=command)
    return f"{verdict.decision} approved" if verdict.approved else str(verdict.decision)


PYTEST, LOG = "allow bash pytest *", "allow bash git log *"


@pytest.mark.parametrize(
    ("command", "rules", "found"),
    [
        ("git log", [], "allow"),
        ("git log | tail -5", [], "allow"),
        ("git log", [LOG], "allow approved"),
        ("git log | awk 1", [LOG], "allow"),
        ("git log | tail -5", [LOG], "allow approved"),
        ("pytest -q", [], "ask"),
        ("pytest -q", [PYTEST], "allow approved"),
        ("pytest -q | tail -5", [PYTEST], "allow approved"),
        ("pytest -q | tail -5 | wc -l", [PYTEST], "allow approved"),
        ("pytest -q | awk 1", [PYTEST], "ask"),
        ("pytest -q | awk 1", [PYTEST, "allow bash awk *"], "allow approved"),
        ("pytest (x) | tail -5", [PYTEST], "ask"),
        ("pytest -q | make", [PYTEST], "ask"),
        ("pytest secret", [PYTEST], "allow approved"),
        ("pytest secret", [PYTEST, "ask read secret"], "ask"),
        ("pytest secret", [PYTEST, "deny read secret"], "deny"),
        ("git log", ["allow read *"], "allow"),
    ],
)
def test_a_command_is_approved_when_each_part_is_allowed_or_plain(command: str, rules: list[str], found: str):
    assert _bash(command, *rules) == found
    assert _bash(command, *rules, mode=EDITS) == found
    in_all = "deny" if found == "deny" else "allow approved"
    assert _bash(command, *rules, mode=ALL) == in_all


@pytest.mark.parametrize("command", ["git log", "git log | tail -5", "pytest -q", "pytest -q | awk 1"])
def test_mode_plan_approves_no_command(command: str):
    session = (Rule(Decision.ALLOW, "bash"),)
    expected = "deny" if "pytest" in command else "allow"
    assert _bash(command, "allow bash *", "allow * *", mode=PLAN, session=session) == expected


def test_the_sessions_rules_approve_as_others_do():
    session = (Rule(Decision.ALLOW, "bash", "pytest *"),)
    assert _bash("pytest -q | tail -5", session=session) == "allow approved"
    assert _bash("pytest -q | awk 1", session=session) == "ask"
    assert _bash("git log", session=(Rule(Decision.ALLOW, "bash", "git log *"),)) == "allow approved"


def test_always_allows_all_that_kept_a_command_from_running():
    for rules in ((), (PYTEST,)):
        verdict = _judge("bash", _rules(*rules), command="pytest -q | awk 1 | tail -5")
        assert verdict.decision is Decision.ASK
        again = _judge("bash", _rules(*rules), session=verdict.always, command="pytest -q | awk 1 | tail -5")
        assert (again.decision, again.approved) == (Decision.ALLOW, True)
    mixed = _judge("bash", _rules(PYTEST), command="pytest -q | awk 1")
    assert mixed.reason == "a rule allows part of it, and the rest is not simple enough to run with it"


@pytest.mark.parametrize(
    ("tool", "arguments", "rules", "mode", "approved"),
    [
        ("write", {"path": "a"}, [], EDITS, True),
        ("write", {"path": "a"}, ["allow write a"], ASK, True),
        ("read", {"path": "a"}, [], EDITS, False),
        ("read", {"path": "a"}, ["allow read a"], ASK, True),
        ("read", {"path": "a"}, [], ALL, True),
        ("fork", {"name": "a"}, [], ASK, False),
        ("web_fetch", {"url": "https://a.example/"}, ["allow web_fetch https://a.example/*"], ASK, True),
    ],
)
def test_what_only_reads_is_allowed_and_not_approved(
    tool: str, arguments: dict[str, Any], rules: list[str], mode: PermissionMode, approved: bool
):
    verdict = _judge(tool, _rules(*rules), mode, **arguments)
    assert (verdict.decision, verdict.approved) == (Decision.ALLOW, approved)


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("git log *", "git log --oneline"),
        ("*", "git log --output=x"),
        ("git *", "git log --output=x"),
        ("git", "git log --output=x"),
        ("git log --output=x", "git log --output=x"),
        ("git log --output=*", "git log --output=x"),
        ("git log --output *", "git log --output x"),
        ("git log * --output=* --oneline", "git log a --output=x --oneline"),
        ("sort *", "sort -o a b"),
        ("sort -o *", "sort -o a b"),
        ("find . -delete", "find . -delete"),
        ("awk *", "awk 'BEGIN {system(1)}'"),
        ("pytest *", "pytest --output=x"),
    ],
)
def test_an_allow_rule_that_names_an_option_allows_it(pattern: str, command: str):
    if pattern == "git":
        assert _bash(command, f"allow bash {pattern}") == "ask"
    else:
        assert _bash(command, f"allow bash {pattern}") == "allow approved"


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("git log *", "git log --output=x"),
        ("git log *", "git log --outp=x"),
        ("git log *", "git log --oneline --output x"),
        ("git log *", "git log $X"),
        ("git log *", "git log '--output=a b'"),
        ("git log --one*", "git log --oneline --output=x"),
        ("git log --out*", "git log --output=x"),
        ("git log --output=*", "git log --output=x --output-directory=y"),
        ("git diff *", "git diff a /etc/passwd"),
        ("find . *", "find . -delete"),
        ("find . -name *", "find . -name x -exec rm {} +"),
        ("find . -exec *", "find . -exec rm -r {} +"),
        ("sed -n *", "sed -n 'w x'"),
        ("awk -F: *", "awk -F: 'BEGIN {system(1)}'"),
        ("sort -n *", "sort -n -o x"),
        ("git l*", "git log --output=x"),
    ],
)
def test_an_allow_rule_says_nothing_of_an_option_that_does_harm(pattern: str, command: str):
    assert _bash(command, f"allow bash {pattern}") == "ask"
    verdict = _judge("bash", _rules(f"allow bash {pattern}"), command=command)
    assert verdict.always == (Rule(Decision.ALLOW, "bash", command),)
    assert _bash(command, session=verdict.always) == "allow approved"
    assert _bash(command, "allow bash *", f"ask bash {pattern}") == "ask"


def test_always_allows_a_folder_and_a_file_at_the_top_only_where_it_is():
    def always(path: str) -> list[str]:
        return [rule.pattern for rule in _judge("write", path=path).always]

    assert always("src/a.py") == ["src/**"]
    assert always("a.py") == ["a.py"]
    assert always("/etc/x/a") == ["/etc/x/**"]
    assert always("/a.py") == ["/a.py"]


@pytest.mark.parametrize("tool", ["glob", "grep"])
def test_always_allows_the_directory_of_a_search_and_nothing_beside_it(tool: str):
    cases = [("/out/in", "/out/in/**", "/out/b"), ("/etc", "/etc/**", "/b"), ("/o[1]", "/o[[]1]/**", "/o1/b")]
    for path, pattern, beside in cases:
        rules = _judge(tool, path=path).always
        assert rules == (Rule(Decision.ALLOW, "read", pattern),)
        for again in (path, f"{path}/a/b"):
            assert _judge(tool, session=rules, path=again).decision is Decision.ALLOW
            assert _judge("read", session=rules, path=again).decision is Decision.ALLOW
        assert _judge("read", session=rules, path=beside).decision is Decision.ASK
    assert _judge(tool, path="/").always == (Rule(Decision.ALLOW, "read", "/**"),)
    assert _judge(tool, _rules("ask read *"), path="src").always == (Rule(Decision.ALLOW, "read", "src/**"),)
    assert _judge(tool, _rules("ask read *"), path=".").always == (Rule(Decision.ALLOW, "read", "**"),)


def test_always_allows_a_web_host_and_nothing_wider():
    def always(url: str) -> list[str]:
        return [rule.pattern for rule in _judge("web_fetch", url=url).always]

    assert always("https://A.example:443/x") == ["https://a.example/*"]
    assert always("http://[::1]:8080/x") == ["http://[::1]:8080/*"]
    assert always("https://evil.example\\@a.example/") == ["https://evil.example\\@a.example/"]
    assert always("https://me@a.example/") == ["https://me@a.example/"]
    assert always("no url") == ["no url"]
