from __future__ import annotations

import re

import pytest

from agentmesh.config.agent_types import (
    WITHHELD,
    AgentType,
    built_in,
    is_denied,
    offered,
    tools_for,
    unknown_tools,
)
from agentmesh.domain.permissions import Decision, Permissions, Rule, intersect

ALL = sorted({*WITHHELD, "ask_user", "bash", "edit", "glob", "grep", "list_agents", "read", "web_fetch", "write"})
BUILT_IN = {kind.name: kind for kind in built_in()}


def kind(**values) -> AgentType:
    return AgentType(**{"name": "x", "description": "d", "system_prompt": "p", **values})


def deny(tool: str, pattern: str = "*") -> Rule:
    return Rule(Decision.DENY, tool, pattern)


def test_the_types_that_come_with_the_program():
    assert sorted(BUILT_IN) == ["explore", "general-purpose", "plan"]
    assert tools_for(BUILT_IN["explore"], ALL, ALL) == ["ask_user", "glob", "grep", "read"]
    assert tools_for(BUILT_IN["plan"], ALL, ALL) == ["ask_user", "glob", "grep", "read", "web_fetch"]
    assert tools_for(BUILT_IN["general-purpose"], ALL, ALL) == [tool for tool in ALL if tool not in WITHHELD]


@pytest.mark.parametrize("built", BUILT_IN.values(), ids=BUILT_IN)
def test_what_comes_with_the_program_is_told_how_to_report(built):
    prompt = built.system_prompt
    for needed in ("Your final message is all that your parent sees", "absolute path", "line numbers", "ask_user"):
        assert needed in prompt
    assert re.search(r"[Uu]nder \d+ lines", prompt)
    assert not re.search(r"\d{4}-\d\d-\d\d|[0-9a-f]{8}-[0-9a-f]{4}", prompt)
    assert (built.source, built.trusted, built.hidden, built.model) == ("built in", False, False, None)


@pytest.mark.parametrize("name", ["explore", "plan"])
def test_the_reading_types_deny_writing_whatever_tools_they_are_given(name):
    denied = {rule.tool for rule in BUILT_IN[name].rules if rule.effect is Decision.DENY and rule.pattern == "*"}
    assert denied == {"write", "bash"}


def test_tools_are_the_parents_without_what_is_withheld():
    assert tools_for(kind(), ["bash", "fork", "read", "task"], ALL) == ["bash", "read"]
    assert tools_for(kind(), ["read", "bash"], ALL) == ["read", "bash"]


def test_tools_are_never_more_than_the_parents():
    assert tools_for(kind(tools=("read", "bash"), trusted=True), ["read"], ALL) == ["read"]
    assert tools_for(kind(tools=("task",), trusted=True), ["read"], ALL) == []


def test_only_a_trusted_type_grants_what_is_withheld_and_only_by_name():
    named = (*sorted(WITHHELD), "read")
    assert tools_for(kind(tools=named, trusted=True), ALL, ALL) == [t for t in ALL if t in named]
    assert tools_for(kind(tools=named), ALL, ALL) == ["read"]
    assert not WITHHELD & set(tools_for(kind(trusted=True), ALL, ALL))
    assert not WITHHELD & set(tools_for(kind(tools=("*",), trusted=True), ALL, ALL))
    assert tools_for(kind(tools=("t*", "w*"), trusted=True), ALL, ALL) == ["web_fetch", "write"]


def test_disallowed_tools_are_never_given():
    chosen = kind(tools=("read", "bash", "task"), disallowed_tools=("bash", "t*"), trusted=True)
    assert tools_for(chosen, ALL, ALL) == ["read"]


def test_patterns_of_names_and_tools_that_there_are_not():
    parent = ["mcp_git_log", "mcp_git_push", "old_tool", "read"]
    known = ["mcp_git_log", "mcp_git_push", "read"]
    assert tools_for(kind(tools=("mcp_git_*",), disallowed_tools=("*_push",)), parent, known) == ["mcp_git_log"]
    assert tools_for(kind(), parent, known) == known
    assert unknown_tools(kind(tools=("read", "raed", "mcp_git_*"), disallowed_tools=("mcp_x*",)), known) == [
        "raed",
        "mcp_x*",
    ]


def test_rules_are_a_layer_over_the_parents():
    parent = Permissions.of([deny("bash", "rm *")])
    own = (deny("write"),)
    assert intersect(parent, kind().rules) == parent
    assert intersect(parent, kind(rules=own).rules) == Permissions((*parent.layers, own))


def test_hidden_and_denied_types_are_not_offered():
    types = {name: kind(name=name, hidden=name == "b") for name in "dcba"}
    rules = Permissions.of([deny("task", "c"), Rule(Decision.ASK, "task", "d")])
    assert [each.name for each in offered(types, rules)] == ["a", "d"]
    assert [name for name in "abcd" if is_denied(name, rules)] == ["c"]


def test_a_type_can_be_kept_from_using_another():
    rules = intersect(Permissions(), [deny("task", "explore")])
    assert is_denied("explore", rules)
    assert not is_denied("explorer", rules)
    assert is_denied("anything", intersect(rules, [deny("task")]))
