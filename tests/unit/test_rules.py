from __future__ import annotations

import pytest

from agentmesh.config.forms import BadValue
from agentmesh.config.rules import SourcedRule, parsed, permissions, rule_text, split, unmatched
from agentmesh.domain.permissions import Decision, Permissions, Rule

DENY, ASK, ALLOW = Decision.DENY, Decision.ASK, Decision.ALLOW


@pytest.mark.parametrize(
    ("text", "tool", "pattern"),
    [
        ("write", "write", "*"),
        (" bash ( git log * ) ", "bash", "git log *"),
        ("bash(f() { x; })", "bash", "f() { x; }"),
        ("read(*.pem)", "read", "*.pem"),
        ("read(/etc/**)", "read", "/etc/**"),
        ("web_fetch(https://docs.python.org/*)", "web_fetch", "https://docs.python.org/*"),
        ("task(explore)", "task", "explore"),
        ("mcp_*", "mcp_*", "*"),
        ("*", "*", "*"),
        ("bash(*)", "bash", "*"),
        ("bash(a\nb)", "bash", "a\nb"),
    ],
)
def test_a_rule_is_a_tool_and_perhaps_a_pattern(text, tool, pattern):
    assert parsed(ASK, text) == Rule(ASK, tool, pattern)


@pytest.mark.parametrize(
    "text", ["", " ", "bash(", "bash)", "(x)", "bash x", "a b(c)", "bash(x) y", "bash()", "bash( )"]
)
def test_what_is_no_rule_is_refused(text):
    with pytest.raises(BadValue, match=r"should be a rule|empty pattern"):
        parsed(DENY, text)


@pytest.mark.parametrize("tool", ["read", "write", "edit", "glob", "grep"])
def test_paths_begin_at_the_home_directory_and_must_be_usable(tool, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert parsed(DENY, f"{tool}(~/.ssh/**)").pattern == "/home/me/.ssh/**"
    with pytest.raises(BadValue, match="cannot contain"):
        parsed(DENY, f"{tool}(../x)")


def test_only_patterns_of_paths_are_paths():
    assert parsed(DENY, "bash(~/x ../y)").pattern == "~/x ../y"


def test_a_rule_is_written_as_it_was_read():
    for text in ("write", "bash(git log *)", "task(explore)"):
        assert rule_text(parsed(DENY, text)) == text


def test_lists_with_commas_keep_what_is_in_brackets():
    assert list(split("read, bash(a, b) ,x")) == ["read", "bash(a, b)", "x"]
    assert list(split("a)), b")) == ["a))", "b"]


def test_a_projects_rules_are_a_layer_of_their_own():
    own, theirs = Rule(ALLOW, "bash", "make"), Rule(DENY, "bash", "curl *")
    rules = [SourcedRule(own, "user"), SourcedRule(theirs, "project", from_project=True)]
    assert permissions(rules) == Permissions(((own,), (theirs,)))
    assert permissions(rules[:1]) == Permissions(((own,),))
    assert permissions(rules[1:]) == Permissions(((), (theirs,)))
    assert permissions([]) == Permissions()


def test_rules_that_match_no_tool_are_told():
    def told(text: str) -> list[str]:
        return [
            str(problem) for problem in unmatched([SourcedRule(parsed(DENY, text), "f")], ["bash", "mcp_x", "read"])
        ]

    assert told("bash(rm *)") == told("mcp_*") == told("*") == []
    assert told("Bash(rm *)") == ["f: the rule deny Bash(rm *) matches no tool; did you mean bash?"]
    assert told("jira") == ["f: the rule deny jira matches no tool; the tools are bash, mcp_x, read."]
