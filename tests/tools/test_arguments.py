"""Arguments of the tools: a number where text is wanted is its text, as it was written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from agentmesh.engine import arguments
from agentmesh.engine.tool import ToolError
from agentmesh.mcp import tools as served
from agentmesh.store.tx import Database
from agentmesh.tools import toolset

TOOLS = toolset.builtin(cast(Database, None), workdir=Path("/"))


def read(tool: str, given: str) -> Any:
    return arguments.read(TOOLS[tool], given)[0]


NUMBERS = [
    "5", "-0", "1.0", "1.10", "1e5", "0.1e-2", "12345678901234567890", "3.14159265358979323846264338327950288", "1e400",
    "true", "false",
]  # fmt: skip


@pytest.mark.parametrize("written", NUMBERS)
def test_17_11_a_number_or_a_truth_as_a_message_is_its_text_as_written(written):
    assert read("send", f'{{"to": "a", "message": {written}}}').message == written
    forked = read("fork", f'{{"prompt": {written}, "name": {written}}}')
    assert (forked.name, forked.prompt) == (written, written)
    assert read("ask_user", f'{{"question": {written}}}').question == written


@pytest.mark.parametrize("given", ["[12345678, 12e45678, true]", '"[12345678, 12e45678, true]"'])
def test_17_11_ids_of_digits_in_a_list_are_text(given):
    found = read("wait", f'{{"timeout": 5, "from_agents": {given}}}').from_agents
    assert found == ["12345678", "12e45678", "true"]


def test_17_11_an_id_of_digits_names_an_agent():
    assert read("kill", '{"agent_id": 12345678}').agent_id == "12345678"
    assert read("send", '{"to": 12e45678, "message": "x"}').to == "12e45678"
    assert read("send", '{"to": [12345678, "a", true], "message": "x"}').to == ["12345678", "a", "true"]
    assert read("send", r'{"to": "[12345678, \"a\"]", "message": "x"}').to == ["12345678", "a"]
    assert read("send", '{"to": "[a", "message": "x"}').to == "[a"


def test_17_11_text_within_items_is_read_so_too():
    assert read("todo_write", '{"items": [{"content": 1.50, "status": "pending"}]}').items[0].content == "1.50"
    assert read("ask_user", '{"question": "Which?", "options": [1, 2.0]}').options == ["1", "2.0"]


def test_22_4_an_object_as_a_message_is_its_json():
    assert read("send", '{"to": "a", "message": {"sum": 3, "of": ["é", {"b": null}]}}').message == (
        '{"sum": 3, "of": ["é", {"b": null}]}'
    )
    assert read("write", '{"path": "a.json", "content": {}}').content == "{}"
    assert read("send", r'{"to": "a", "message": {"half": "\ud83d"}}').message == '{"half": "\ufffd"}'
    assert read("todo_write", '{"items": [{"content": {"a": 1}, "status": "pending"}]}').items[0].content == '{"a": 1}'


def test_22_4_a_wait_without_arguments_has_a_time_limit():
    assert (read("wait", "{}").timeout, read("wait", "{}").from_agents) == (600, None)


def test_17_11_text_and_numbers_stay_what_they_are():
    assert read("send", '{"to": "a", "message": "5.0"}').message == "5.0"
    assert read("wait", '{"timeout": "30"}').timeout == 30
    assert read("wait", '{"timeout": 30, "from_agents": null}').from_agents is None


def optional_arguments(tool: str) -> list[str]:
    return [field.alias or name for name, field in TOOLS[tool].args.model_fields.items() if not field.is_required()]


GIVEN = {
    "ask_user": {"question": "x"}, "bash": {"command": "x"}, "edit": {"path": "a", "old": "x", "new": "y"},
    "fork": {"name": "x", "prompt": "x"}, "glob": {"pattern": "*"}, "grep": {"pattern": "x"}, "merge": {"agent": "x"},
    "process": {}, "read": {"path": "a"}, "send": {"to": "a", "message": "x"}, "wait": {},
    "task": {"description": "x", "prompt": "x"}, "web_fetch": {"url": "https://a.b"},
}  # fmt: skip


@pytest.mark.parametrize("tool", GIVEN)
def test_an_optional_argument_that_is_null_counts_as_left_out(tool):
    left_out = read(tool, json.dumps(GIVEN[tool]))
    nulls = dict.fromkeys(optional_arguments(tool))
    assert read(tool, json.dumps(nulls | GIVEN[tool])) == left_out
    assert arguments.read(TOOLS[tool], json.dumps(nulls | GIVEN[tool]))[1] is None


def test_a_null_besides_a_number_for_a_text_is_left_out_too():
    found = read("grep", '{"pattern": 5, "path": null, "context": null}')
    assert (found.pattern, found.path, found.context) == ("5", ".", 0)


def test_a_required_argument_that_is_null_is_refused_by_its_name():
    with pytest.raises(ToolError, match=r"arguments: path: should be text, not null$"):
        read("read", '{"path": null, "offset": null}')


@pytest.mark.parametrize("given", ['{"agent": "w0"}', '{"agent_id": "w0"}'])
def test_an_agent_is_read_under_both_names(given):
    assert read("merge", given).agent == "w0"
    assert read("kill", given).agent_id == "w0"
    assert read("interrupt", given).agent_id == "w0"
    assert arguments.read(TOOLS["merge"], given)[1] is None
    assert served.read("kill", json.loads(given))[0].agent_id == "w0"


def test_the_other_name_of_an_agent_is_unknown_beside_the_right_one():
    given = '{"agent_id": "w1", "agent": "w0"}'
    assert read("merge", given).agent == "w0"
    assert arguments.read(TOOLS["merge"], given)[1] == "ignored unknown arguments: 'agent_id' (did you mean 'agent'?)."


def test_the_other_name_is_no_optional_argument():
    """With its type as agent, the model did not mean an earlier sub-agent."""
    given = '{"agent": "explore", "description": "x", "prompt": "x"}'
    assert read("task", given).agent_id is None
    assert "'agent'" in (arguments.read(TOOLS["task"], given)[1] or "")


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("8", 8), ("1.5", 1.5), ('"8"', 8), ('"8s"', 8), ('"10m"', 600), ('"2 h"', 7200), ('"1d"', 86400), ("null", None)],
)
def test_the_times_of_a_message_are_seconds_or_spans(given, seconds):
    found = read("send", f'{{"to": "a", "message": "x", "after": {given}, "every": {given}}}')
    assert (found.after, found.every) == (seconds, seconds)


def test_another_text_for_a_time_is_refused_with_what_is_wanted():
    with pytest.raises(ToolError, match=r"after: should be seconds, or a span as 90s, 10m, 2h or 1d$"):
        read("send", '{"to": "a", "message": "x", "after": "soon"}')


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("send", r'{"to": "a", "message": "x \u0000 y"}'),
        ("fork", r'{"name": "a", "prompt": "\u0000"}'),
        ("task", r'{"description": "a", "prompt": "\u0000", "odd": 1}'),
        ("ask_user", r'{"question": "x", "options": ["a", "b\u0000"]}'),
    ],
)
def test_a_nul_that_the_database_cannot_hold_is_noted(tool, given):
    assert "NUL cannot be kept: U+FFFD stands in its place." in (arguments.read(TOOLS[tool], given)[1] or "")


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("send", r'{"to": "a", "message": "\\u0000 \ud83d\ude00 \u00e9"}'),
        ("write", r'{"path": "a", "content": "\u0000"}'),
        ("grep", r'{"pattern": "\u0000"}'),
    ],
)
def test_a_text_that_is_kept_whole_is_not_noted(tool, given):
    assert arguments.read(TOOLS[tool], given)[1] is None


@pytest.mark.parametrize(
    ("given", "word"), [("null", "null"), ("[1, 2]", "a list"), ('[{"a": 1}]', "a list"), ('["a"]', "a list")]
)
def test_17_11_what_is_no_text_is_refused_in_a_sentence(given, word):
    with pytest.raises(ToolError, match=f"message: should be text, not {word}"):
        read("send", f'{{"to": "a", "message": {given}}}')


def test_17_11_the_mcp_server_reads_numbers_as_the_tools_do():
    args, note = served.read("send", {"to": "a", "message": 5})
    assert (args.message, note) == ("5", None)
    assert served.read("fork", {"name": 7, "prompt": 1.0})[0].prompt == "1.0"
    assert served.read("send", {"to": "a", "message": 12345678901234567890})[0].message == "12345678901234567890"
    with pytest.raises(ToolError, match="not a list"):
        served.read("send", {"to": "a", "message": [5]})


@pytest.mark.parametrize("given", ["", "{}", " {} ", "[]", "null", '{"to": null}'])
def test_17_11_missing_texts_are_refused_in_words(given):
    with pytest.raises(ToolError):
        read("send", given)
