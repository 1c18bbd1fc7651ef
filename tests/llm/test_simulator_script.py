"""Script files: which rule answers, how placeholders are filled, and how mistakes are named."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from agentmesh.domain.errors import ConfigError, UsageError
from agentmesh.llm.simulator.reply import FaultKind, NoReply
from agentmesh.llm.simulator.request import ChatRequestView
from agentmesh.llm.simulator.script import load_script, parse_script
from agentmesh.llm.simulator.serve import serve
from tests.llm.simulator_http import stream

ROOT_ID = "11111111-1111-4111-8111-111111111111"
CHILD_ID = "22222222-2222-4222-8222-222222222222"
FORK = 'You are the agent "worker-3", a child of "root".\nReport with send.\n\nCount the files.'


def rules(*items):
    return parse_script(json.dumps({"rules": list(items)}), "test.json")


def view(*messages, model="demo"):
    return ChatRequestView({"model": model, "messages": list(messages)})


def user(text):
    return {"role": "user", "content": text}


def called(*calls, text=None):
    """An assistant message with tool calls and their results."""
    tool_calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for n, (name, arguments, _result) in enumerate(calls)
    ]
    results = [
        {"role": "tool", "tool_call_id": f"c{n}", "content": json.dumps(result)}
        for n, (_name, _arguments, result) in enumerate(calls)
    ]
    return [{"role": "assistant", "content": text, "tool_calls": tool_calls}, *results]


def test_the_first_rule_that_fits_answers():
    respond = rules(
        {"when": {"contains": "weather"}, "reply": {"text": "rain"}},
        {"when": {"contains": "weather in"}, "reply": {"text": "never reached"}},
        {"reply": {"text": "anything else"}},
    )
    assert respond(view(user("the weather in May"))).text == "rain"
    assert respond(view(user("hello"))).text == "anything else"


@pytest.mark.parametrize(
    ("when", "fits"),
    [
        ({"agent": "worker-*"}, True),
        ({"agent": "root"}, False),
        ({"model": "de?o"}, True),
        ({"model": "other"}, False),
        ({"step": 1}, True),
        ({"step": 0}, False),
        ({"contains": '"files"'}, True),
        ({"contains": "absent"}, False),
        ({"matches": r"files.*b\.py"}, True),
        ({"matches": "^b"}, False),
        ({"input_contains": "Count"}, True),
        ({"input_contains": "first prompt"}, False),
        ({"result": {"tool": "glob"}}, True),
        ({"result": {"tool": "glob", "contains": "b.py"}}, True),
        ({"result": {"tool": "glob", "contains": "c.py"}}, False),
        ({"result": {"tool": "bash"}}, False),
        ({"agent": "worker-3", "step": 1, "contains": "b.py"}, True),
        ({"agent": "worker-3", "step": 2, "contains": "b.py"}, False),
    ],
)
def test_each_condition_looks_at_the_right_thing(when, fits):
    request = view(
        user("first prompt"), *called(("bash", {}, {"output": "old"})), user(FORK),
        *called(("glob", {"pattern": "*"}, {"files": ["a.py", "b.py"]})),
    )  # fmt: skip
    respond = rules({"when": when, "reply": {"text": "yes"}}, {"reply": {"text": "no"}})
    assert (respond(request).text == "yes") is fits


def test_placeholders_are_filled_from_the_request():
    request = view(user("count"), *called(("glob", {}, {"files": ["a b.py", "ü.py"]}), ("bash", {}, {"exit_code": 3})))
    reply = {
        "text": "{agent} at step {step} on {model}: {result:glob.files.1}, code {result:bash.exit_code}, "
        "all {result:glob.files}",
        "reasoning": "said {input}; last {last}",
    }
    answer = rules({"reply": reply})(request)
    assert answer.text == "root at step 1 on demo: ü.py, code 3, all a b.py, ü.py"
    assert answer.reasoning == 'said count; last {"exit_code": 3}'


def test_a_placeholder_that_is_a_whole_argument_keeps_its_type():
    forks: list[tuple[str, dict[str, str], dict[str, str]]] = [
        ("fork", {}, {"agent_id": CHILD_ID, "name": "a"}),
        ("fork", {}, {"agent_id": ROOT_ID, "name": "b"}),
    ]
    call = {"name": "wait", "arguments": {"timeout": "{step}", "from_agents": "{results:fork.agent_id}"}}
    (made,) = rules({"reply": {"tool_calls": [call]}})(view(user("go"), *called(*forks))).tool_calls
    assert made.arguments == {"timeout": 1, "from_agents": [CHILD_ID, ROOT_ID]}


def test_groups_of_the_regular_expression_and_the_parent_can_be_used():
    rule = {"when": {"matches": r"Count the (\w+)"}, "reply": {"text": "{parent} wants {match:1}"}}
    assert rules(rule)(view(user(FORK))).text == "root wants files"


def test_braces_that_are_no_placeholder_stay():
    text = 'JSON {"a": {"b": 1}} and {{agent}} and {} and { agent }'
    assert (
        rules({"reply": {"text": text}})(view(user("x"))).text
        == 'JSON {"a": {"b": 1}} and {agent} and {} and { agent }'
    )


def test_a_reply_has_everything_a_server_can_be_told():
    reply = {
        "text": "t", "usage": {"input_tokens": 5, "cached_tokens": 3}, "chunk_size": 2, "first_byte_delay": 0.5,
        "chunk_delay": 0.1, "finish_reason": "length", "cost_usd": 0.01,
        "tool_calls": [{"name": "f", "arguments": "{not json", "id": "mine"}],
        "fault": {"kind": "status", "status": 429, "headers": {"Retry-After": "2"}},
    }  # fmt: skip
    answer = rules({"reply": reply})(view(user("x")))
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.cached_tokens, answer.cost_usd) == (5, 3, 0.01)
    assert (answer.chunk_size, answer.first_byte_delay, answer.chunk_delay) == (2, 0.5, 0.1)
    assert (answer.finish_reason, answer.tool_calls[0].arguments, answer.tool_calls[0].id) == (
        "length",
        "{not json",
        "mine",
    )
    assert answer.fault is not None
    assert (answer.fault.kind, answer.fault.headers) == (FaultKind.STATUS, {"Retry-After": "2"})


def test_a_fault_may_be_given_by_its_name_alone():
    fault = rules({"reply": {"fault": "cut"}})(view(user("x"))).fault
    assert fault is not None
    assert fault.kind is FaultKind.CUT


def test_when_no_rule_fits_or_a_placeholder_is_empty_the_reason_is_given():
    with pytest.raises(NoReply, match="no rule of the script fits agent \"root\" at step 0; last message: 'hi'"):
        rules({"when": {"step": 5}, "reply": {}})(view(user("hi")))
    with pytest.raises(NoReply, match=r'rule 1 "sum": \{result:glob.files\}: there is no result of glob'):
        rules({"name": "sum", "reply": {"text": "{result:glob.files}"}})(view(user("hi")))
    with pytest.raises(NoReply, match='there is no "files" in'):
        rules({"reply": {"text": "{result:glob.files}"}})(view(user("x"), *called(("glob", {}, {"error": "no"}))))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "Invalid JSON"),
        ("[]", "valid dictionary|object"),
        ('{"rules": []}', "rules: List should have at least 1"),
        ('{"rules": [{}]}', "rule 1: reply: Field required"),
        ('{"rules": [{"reply": {}}, {"name": "two", "reply": {"txt": ""}}]}', 'rule 2 "two": reply.txt: Extra inputs'),
        ('{"rules": [{"reply": {"text": "{agnt}"}}]}', "rule 1: reply.text: unknown placeholder {agnt}"),
        ('{"rules": [{"reply": {"text": "{result}"}}]}', "unknown placeholder {result}"),
        ('{"rules": [{"reply": {"tool_calls": [{"name": "f", "arguments": {"a": ["{b}"]}}]}}]}', "placeholder {b}"),
        ('{"rules": [{"when": {"matches": "("}, "reply": {}}]}', "when.matches: not a regular expression"),
        ('{"rules": [{"when": {"step": -1}, "reply": {}}]}', "when.step: Input should be greater"),
        ('{"rules": [{"reply": {"fault": "explode"}}]}', "reply.fault.kind: Input should be 'empty'"),
        ('{"rules": [{"reply": {"chunk_delay": -1}}]}', "reply.chunk_delay"),
        ('{"rules": [7]}', "rule 1: Input should be"),
    ],
)
def test_mistakes_name_file_rule_and_field(tmp_path, text, problem):
    path = tmp_path / "broken script.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=problem) as caught:
        load_script(path)
    assert str(path) in caught.value.message
    assert caught.value.hint


def test_a_missing_file_is_a_configuration_error(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        load_script(tmp_path / "absent.json")


def test_the_example_of_the_documentation_is_valid():
    text = (Path(__file__).parents[2] / "docs" / "reference" / "simulator.md").read_text(encoding="utf-8")
    examples = [block.split("```")[0] for block in text.split("```json\n")[1:]]
    assert examples
    for example in examples:
        parse_script(example, "docs/reference/simulator.md")


def test_serve_runs_a_script_until_told_to_stop(tmp_path):
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"rules": [{"reply": {"text": "from the file"}}]}))
    stop, urls, ready = threading.Event(), [], threading.Event()

    def started(url):
        urls.append(url)
        ready.set()

    server = threading.Thread(target=lambda: serve(script=path, profile="vllm", started=started, stop=stop))
    server.start()
    assert ready.wait(20)
    assert "".join(stream(urls[0]).deltas("content")) == "from the file"
    stop.set()
    server.join(20)
    assert not server.is_alive()


def test_serve_refuses_an_unknown_profile_and_an_impossible_port():
    with pytest.raises(UsageError, match="there is no profile"):
        serve(profile="gpt")
    with pytest.raises(UsageError, match="70000 is not a port"):
        serve(port=70000)
