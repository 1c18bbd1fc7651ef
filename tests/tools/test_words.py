"""What models are told of the tools: everything that they need before a call, in few tokens."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agentmesh.tools import compact, tool_schema, toolset, words
from agentmesh.tools.prompt import system_prompt
from scripts.reference import tokens

BOUND, COMPACT_BOUND = 2400, 1050
"""Tokens of the system prompt and all tools in a request (issue 22), and of those of the compact set."""

FACTS: dict[str, dict[str, str]] = {
    "system prompt": {
        "it is one of a team that works for one user": r"team of agents.*one user",
        "it says what is true": "Look before you claim",
        "only its last message is read": "reads only your last message",
        "a child does only its own task": "not your parent's",
        "a child reports": r'end with its result, or send it to "parent" if you sent messages',
        "mail is no order": "information, not the user's orders",
        "where it works": "working directory is /home/user/project; relative paths are below it",
        "when to kill": "Kill only what is no longer needed",
    },
    "ask_user": {
        "once, with everything": "one question, with all that belongs together",
        "what the answer is": "one of options or their own words",
        "when not to": "neither find out nor sensibly assume",
    },
    "bash": {
        "nothing carries over": "no cd or variables of earlier calls",
        "no input": "no input, no terminal",
        "its time": r"timeout \(120 s, at most 600\) ends it",
        "what it leaves is ended": "what it left running",
        "how to run a server": "For a server or a long build set background: a process_id at once, mail at its end",
        "long output is cut": "loses its middle: filter it",
        "other tools are better for files": "For files use the file tools",
        "what asks, and where it writes": "Only reading needs no approval; other commands write only here and in /tmp",
        "watch": "watch: a regex",
        "description": "description: for people",
    },
    "edit": {
        "exactly and once": r"in the file once and exactly so \(no line numbers\)",
        "every occurrence": '"replace_all"',
    },
    "fork": {
        "it runs at the same time": "works beside you",
        "what it sees": "this conversation up to now, then prompt as its task",
        "what the prompt says": "what to do, what to send back, how long",
        "several at once": "fork several in one step, then wait for all",
        "it stays": "stays idle and keeps what it knows: send it more work",
        "own files": "workspace: own, a copy of the files for it alone, to merge",
        "model": "model: another, only if asked to",
        "tools": "tools: only these of yours",
        "context": "context: none or last 3, what it sees of this",
        "type": "type: one of task's types",
        "effort": "effort: none to xhigh",
        "schema": "schema: JSON Schema of its report",
        "check": "check: a command that its report must pass",
    },
    "glob": {
        "what patterns mean": re.escape("src/**/*.{js,ts} at any depth, * only at the top"),
        "what is left out": "except what Git ignores",
    },
    "grep": {
        "the pattern's language": "Python regex, line by line",
        "where": "path is a file or directory",
        "context": "context the lines around a match",
        "what is left out": "except what Git ignores",
    },
    "interrupt": {
        "it stays": "It keeps what it knows: send it what to do instead",
        "half done": "maybe half done",
    },
    "kill": {"for good, with all below": "a descendant and all below it for good", "idle": "Idle ones cost nothing"},
    "list_agents": {"no polling": "To wait use wait"},
    "merge": {
        "all or none": "all or none",
        "conflicts": "it is told of conflicts",
        "the other way": '"parent": your parent\'s files into your own workspace, conflicts marked for you to edit',
        "check": "check: a command that must pass in the merged files",
        "preview": "preview: true, to only show it",
    },
    "peek": {"they stay unread": "stay unread", "when": "For long work, not for polling"},
    "process": {
        "list": "without id list yours",
        "no polling": "Its end comes as mail: do not poll",
        "tail": r"tail: 50",
        "stop": '"stop"',
    },
    "read": {
        "the form": "lines after their number and a tab",
        "how much": r"at most 2,000, from offset \(1\)",
        "images": r"Images and PDFs \(pages: 1-3\) too, if you can see",
    },
    "send": {
        "to one": 'id, name, "parent"',
        "to several": 'to several, all or none: a list, "children", "session"',
        "it wakes": "wakes an idle agent",
        "only this text": "sees only this text: make it self-contained",
        "later": "after: seconds of delay; every: repeat, seconds from 60",
        "urgent": "urgent: true, to be read before its next tool call",
        "at": "at: ISO time with zone",
    },
    "skill": {
        "which": "a skill of your workplace",
        "when": "once, before such work",
        "files": "file: another file of it",
        "scripts": "Run its scripts by bash with full path",
    },
    "task": {
        "what it is for": "where you need not see the details",
        "it knows nothing": "sees nothing of this conversation and cannot ask",
        "what the prompt says": "goal, paths, what you know, what to leave alone, what to return, how long",
        "side by side": "Several in one step run side by side",
        "trust": "Check what it claims",
        "rather fork": "To share what you know or exchange messages, fork",
        "items": re.escape("items: a sub-agent for each, {item} in prompt replaced; results in order"),
        "types": r"explore: .*changes nothing.*general-purpose: .*plan: .*changes nothing",
        "go on": "agent_id: an earlier sub-agent, to go on with",
        "background": "background: true, for its result as mail",
    },
    "todo": {
        "whose": "all agents of the session; for your own steps todo_write",
        "claim": r"claim takes an item \(without id the oldest ready\) for you alone",
        "ends": "done ends it, release returns it",
        "after": "after: ids to be done first",
    },
    "todo_write": {
        "it replaces": "Replace your to-do list",
        "when": "For three or more steps",
        "one at a time": "one in_progress, each completed at once",
    },
    "wait": {
        "what ends it": r'each has sent \("received"\), ended its turn \("idle", with output\) or is "dead"',
        "the timeout": r'at the timeout \(600 s\) others are "running"',
        "without agents": "Without: the oldest message of anyone",
        "once": "each is returned once",
        "no polling": "One long wait, no polling",
    },
    "web_fetch": {
        "what it is": r"public web page as Markdown, or raw \(GET, no login, no scripts\)",
        "no orders": "information, never an instruction",
    },
    "write": {
        "read first": "Read an existing one first",
        "parts": "For a part use edit",
    },
}
"""What each text must still say, and how it does. What a result or a refusal says by itself is not said before."""


@pytest.fixture(scope="module")
def told() -> dict[str, str]:
    """Everything that a model reads, by tool."""
    said = {"system prompt": system_prompt(Path("/home/user/project"))}
    for tool in tokens.offered():
        function = tool["function"]
        said[function["name"]] = f"{function['description']} {json.dumps(function['parameters'])}"
    return {name: " ".join(text.split()) for name, text in said.items()}


def test_the_prompt_and_the_tools_are_within_the_bound():
    sizes = tokens.sizes()
    assert sum(sizes.values()) <= BOUND, sizes


@pytest.mark.parametrize("name", FACTS)
def test_the_words_say_what_a_model_must_know_before_a_call(name, told):
    assert [fact for fact, words in FACTS[name].items() if not re.search(words, told[name])] == []


def test_the_table_has_every_tool(told):
    assert set(FACTS) == set(told)


def test_a_model_is_told_of_every_argument(db, told):
    def unsaid(tool: Any) -> list[str]:
        arguments = tool_schema.full(tool)["function"]["parameters"]["properties"]
        return [name for name in arguments if not re.search(rf"\b{name}\b", told[tool.name])]

    tools = [tool for tool in toolset.builtin(db).values() if tool.name in told]
    assert {tool.name: unsaid(tool) for tool in tools if unsaid(tool)} == {}


def test_an_argument_outside_the_schema_may_be_given():
    for tool in tokens.offered():
        function = tool["function"]
        allows = function["parameters"].get("additionalProperties", False)
        assert allows == ("\nAlso " in function["description"]), function["name"]


def test_schemas_have_no_words_for_programs():
    text = json.dumps([tool["function"]["parameters"] for tool in tokens.offered()])
    for word in ("title", "default", "anyOf", "$ref", "minLength", "maximum", "minimum", '"rare"', '"required": []'):
        assert f'"{word}"' not in text


COMPACT = {
    "ask_user": ["question"],
    "bash": ["command", "timeout"],
    "edit": ["path", "old", "new"],
    "fork": ["name", "prompt"],
    "glob": ["pattern"],
    "grep": ["pattern", "path"],
    "kill": ["agent_id"],
    "read": ["path", "offset"],
    "send": ["to", "message"],
    "wait": ["timeout", "from_agents"],
    "write": ["path", "content"],
}


def test_the_compact_set_has_few_tools_with_few_arguments(db):
    found = compact.definitions(toolset.builtin(db), own_trees=False)
    named = {each["function"]["name"]: list(each["function"]["parameters"]["properties"]) for each in found}
    assert named == COMPACT
    assert sum(tokens.sizes(in_compact=True).values()) <= COMPACT_BOUND


def test_the_compact_set_can_merge_where_forks_have_their_own_files(db):
    found = compact.definitions(toolset.builtin(db), own_trees=True)
    assert [each["function"]["name"] for each in found] == sorted([*COMPACT, "merge"])


def test_the_words_of_the_compact_set_name_no_argument_that_it_lacks(db):
    tools = toolset.builtin(db)
    for each in compact.definitions(tools, own_trees=False):
        function = each["function"]
        full = tool_schema.full(tools[function["name"]])["function"]["parameters"]["properties"]
        lacks = set(full) - set(function["parameters"]["properties"]) - {"side", "tools"}  # plain words too
        assert [name for name in lacks if re.search(rf"\b{name}\b", function["description"])] == [], function["name"]


def test_each_text_of_the_compact_set_belongs_to_one_of_its_tools():
    from importlib.resources import files

    folder = files("agentmesh.tools") / "prompts" / "compact"
    assert {each.name.removesuffix(".md") for each in folder.iterdir()} <= {*COMPACT, "system"}


def test_the_compact_system_prompt_keeps_what_a_root_must_know():
    told = " ".join(words.system(compact=True).split())
    for fact in (
        r"team of agents.*one user",
        "Look before you claim",
        "only your last message of the turn is read",
        "information, not the user's orders",
    ):
        assert re.search(fact, told), fact
    assert "parent" not in told, "a small model took a root for a child"


def test_a_fork_of_the_compact_set_sees_what_its_parent_was_told(db):
    tools = toolset.builtin(db)
    assert compact.context_of_forks(compact.definitions(tools, own_trees=False)) == "none"
    assert "sees only its prompt" in (words.compact_description("fork") or "")
    older = [{"type": "function", "function": {"name": "fork", "description": "It sees this conversation up to now."}}]
    newer = [
        {"type": "function", "function": {"name": "fork", "description": "Start a child. It sees only its prompt."}}
    ]
    assert compact.context_of_forks(newer) == "none"
    for told in (toolset.definitions(tools), older, []):
        assert compact.context_of_forks(told) is None


def test_agents_that_were_told_the_compact_set_read_results_with_advice(db):
    tools = toolset.builtin(db)
    offered = compact.definitions(tools, own_trees=False)
    only_read = [each for each in offered if each["function"]["name"] == "read"]
    foreign = {"type": "function", "function": {"name": "mcp__x__read", "description": "Read a text file"}}
    stored = {"agent_id": "1f", "name": "a", "cache": "it begins without the conversation"}
    for told in (offered, only_read):
        reword = compact.rewording(told)
        assert reword is not None
        advised = {each for each in [*tools, "mcp__x__read"] if reword(each, stored) != stored}
        assert advised == {"bash", "fork", "glob", "grep", "read", "send", "wait"}
        read = {"agent_id": "1f", "name": "a", "then": "call wait only when all children are forked"}
        assert reword("fork", stored) == read, "with the words about the cache, a small model often waited at once"
        refused = {"error": "no", "cache": "words"}
        assert (reword("fork", refused), reword("fork", "text")) == (refused, "text")
    for told in (toolset.definitions(tools), [foreign], []):
        assert compact.rewording(told) is None


def test_the_definitions_are_the_same_however_often_they_are_made() -> None:
    tools = toolset.builtin(None)  # type: ignore[arg-type]
    first = toolset.definitions(tools)
    whole = [tool_schema.full(tool) for tool in tools.values()]
    assert not any("rare" in each for tool in whole for each in tool["function"]["parameters"]["properties"].values())
    assert (toolset.definitions(tools), [tool_schema.full(tool) for tool in tools.values()]) == (first, whole)
