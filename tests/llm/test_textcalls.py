"""Tool calls written as text are calls when the answer is nothing else, and stay text otherwise."""

from __future__ import annotations

import json

import pytest

from agentmesh.llm import textcalls
from agentmesh.llm.port import ChatRequest, Reply, ToolCall
from tests.llm.asking import TOOL, ask
from tests.llm.misbehaving import delta, good, misbehaving, stream, text

READ = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}
REQUEST = ChatRequest("m-1", [], [TOOL, READ])
LS = '{"name": "bash", "arguments": {"command": "ls"}}'


def read(written: str, request: ChatRequest = REQUEST, **fields) -> Reply:
    return textcalls.read(Reply(text=written, **fields), request, tuple, b"seed")


def fenced(body: str, word: str = "json") -> str:
    return f"```{word}\n{body}\n```"


ONE = [("bash", {"command": "ls"})]
CALLS = {
    "fence": (fenced(LS), ONE),
    "fence without a word": (fenced(LS, ""), ONE),
    "blanks around": (f"\n\n{fenced(LS)}\n", ONE),
    "tag": (f"<tool_call>{LS}</tool_call>", ONE),
    "tag over lines": (f"<tool_call>\n{LS}\n</tool_call>", ONE),
    "two tags": (f"<tool_call>{LS}</tool_call>\n<tool_call>{LS}</tool_call>", ONE * 2),
    "two fences": (f"{fenced(LS)}\n\n{fenced(LS)}", ONE * 2),
    "a list": (fenced(f"[{LS}, {LS}]"), ONE * 2),
    "parameters": (fenced(LS.replace("arguments", "parameters")), ONE),
    "function wrapper": (fenced(f'{{"type": "function", "function": {LS}}}'), ONE),
    "function as name": (fenced(LS.replace('"name"', '"function"')), ONE),
    "arguments as text": (fenced(json.dumps({"name": "bash", "arguments": '{"command": "ls"}'})), ONE),
    "an id": (fenced('{"id": "1", "name": "bash", "arguments": {"command": "ls"}}'), ONE),
    "a fence in an argument": (
        f"<tool_call>{json.dumps({'name': 'bash', 'arguments': {'command': '```json'}})}</tool_call>",
        [("bash", {"command": "```json"})],
    ),
    "a fence in an argument in a fence": (
        fenced(json.dumps({"name": "bash", "arguments": {"command": "a\n```\nb"}})),
        [("bash", {"command": "a\n```\nb"})],
    ),
    "a line break in a text": (
        '<tool_call>{"name": "bash", "arguments": {"command": "ls\npwd"}}</tool_call>',
        [("bash", {"command": "ls\npwd"})],
    ),
}
TEXTS = {
    "words before": f"I call it now:\n{fenced(LS)}",
    "words after": f"{fenced(LS)}\nThat is it.",
    "words between": f"<tool_call>{LS}</tool_call> and <tool_call>{LS}</tool_call>",
    "bare JSON": LS,
    "unknown tool": fenced(LS.replace("bash", "rm")),
    "one unknown tool of two": f"<tool_call>{LS}</tool_call><tool_call>{LS.replace('bash', 'rm')}</tool_call>",
    "invalid JSON": fenced(LS[:-1]),
    "an open tag": f"<tool_call>{LS}",
    "no arguments": fenced('{"name": "bash"}'),
    "arguments that are no object": fenced('{"name": "bash", "arguments": ["ls"]}'),
    "arguments that are any text": fenced('{"name": "bash", "arguments": "ls"}'),
    "both names of arguments": fenced('{"name": "bash", "arguments": {}, "parameters": {}}'),
    "a document about a tool": fenced('{"name": "bash", "parameters": {}, "description": "Runs it."}'),
    "a wrapper with more": fenced(f'{{"function": {LS}, "why": "so"}}'),
    "another language": fenced(LS, "python"),
    "a list with something else": fenced(f"[{LS}, 1]"),
    "an empty list": fenced("[]"),
    "nothing": "",
    "deep nonsense": fenced("[" * 100_000),
}


@pytest.mark.parametrize("form", CALLS)
def test_read_as_calls(form):
    written, calls = CALLS[form]
    reply = read(written)
    assert [(call.name, json.loads(call.arguments)) for call in reply.tool_calls] == calls
    assert len({call.id for call in reply.tool_calls}) == len(calls)
    assert (reply.text, reply.finish_reason) == ("", "tool_calls")
    assert reply.notes == (f"The tool calls were read from text: {written.strip()}",)


@pytest.mark.parametrize("form", TEXTS)
def test_stays_text(form):
    assert read(TEXTS[form]) == Reply(text=TEXTS[form])


def test_an_answer_with_real_calls_stays_as_it_is():
    call = ToolCall("1", "read", "{}")
    assert read(fenced(LS), tool_calls=(call,)).tool_calls == (call,)


def test_a_request_without_tools_gets_text():
    assert read(fenced(LS), ChatRequest("m-1", [])).tool_calls == ()


def test_what_the_limit_cut_stays_text():
    assert read(fenced(LS), finish_reason="length").tool_calls == ()


def test_a_provider_reads_text_unless_it_is_told_not_to():
    written = fenced(LS)
    with misbehaving(good(written)) as server:
        assert [call.name for call in ask(server).tool_calls] == ["bash"]
        assert ask(server, text_tool_calls=False).text == written


def test_what_was_streamed_in_pieces_is_read_whole():
    with misbehaving(stream(*text(*fenced(LS), finish=None), delta("stop"))) as server:
        assert [call.name for call in ask(server).tool_calls] == ["bash"]
