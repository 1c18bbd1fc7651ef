"""Each profile answers in the shapes of its server: one row each, over raw HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from agentmesh.llm.port import Usage
from agentmesh.llm.simulator.profiles import PROFILES, find_profile
from agentmesh.llm.simulator.reply import Fault, FaultKind, ScriptedCall, ScriptedReply
from agentmesh.llm.simulator.server import Simulator
from tests.llm.simulator_http import USER, Answer, chat, stream

REPLY = ScriptedReply(
    text="Two calls.",
    reasoning="Think first.",
    tool_calls=(ScriptedCall("glob", {"pattern": "**/*.py"}), ScriptedCall("read", {"path": "ä b.txt"})),
    usage=Usage(input_tokens=50, output_tokens=9, cached_tokens=32),
    cost_usd=0.25,
    chunk_size=6,
)


@dataclass(frozen=True)
class Row:
    """What is peculiar to one server."""

    profile: str
    reasoning: str
    """Field in which reasoning comes; empty for none."""
    call_indexes: list[int]
    """Index of each event with a tool call's id."""
    call_events: int
    """Events that carry tool calls."""
    finish_alone: bool
    usage: Callable[[list[dict[str, Any]]], bool]
    """Holds for the chunks."""
    error: Callable[[Any], bool]
    """Holds for the body of a status 429."""
    call_prefix: str = "call_"


def usage_alone(chunks):
    return chunks[-1]["choices"] == [] and chunks[-1]["usage"]["total_tokens"] == 59


def usage_after_finish_with_a_choice(chunks):
    last = chunks[-1]
    return last["choices"][0]["finish_reason"] is None and last["usage"]["cost"] == 0.25


def no_usage(chunks):
    return not any(chunk.get("usage") for chunk in chunks)


ROWS = [
    Row("openai", "", [0, 1], 10, True, usage_alone, lambda b: b["error"]["code"] == "rate_limit_exceeded"),
    Row(
        "openrouter", "reasoning", [0, 1], 10, True, usage_after_finish_with_a_choice,
        lambda b: b["error"]["code"] == 429 and b["error"]["metadata"]["raw"] == "too fast",
    ),
    Row("ollama", "reasoning", [0, 1], 2, True, usage_alone, lambda b: b["error"]["type"] == "api_error"),
    Row("ollama-old", "", [0, 0], 2, False, no_usage, lambda b: b["error"]["message"] == "too fast"),
    Row(
        "vllm", "reasoning", [0, 1], 10, False, usage_alone, lambda b: b["error"]["code"] == 429,
        call_prefix="chatcmpl-tool-",
    ),
    Row(
        "llamacpp", "reasoning_content", [0, 1], 10, True,
        lambda chunks: usage_alone(chunks) and chunks[-1]["timings"]["predicted_n"] == 9,
        lambda b: b["error"] == {"code": 429, "message": "too fast", "type": "server_error"},
        call_prefix="",
    ),
    Row("groq", "reasoning", [0, 1], 2, True, usage_alone, lambda b: b["error"]["code"] == "rate_limit_exceeded"),
    Row(
        "gemini", "", [0, 1], 2, True, usage_alone, lambda b: b[0]["error"]["status"] == "RESOURCE_EXHAUSTED",
        call_prefix="function-call-",
    ),
    Row(
        "deepseek", "reasoning_content", [0, 1], 10, True, usage_alone,
        lambda b: b["error"]["code"] == "rate_limit_exceeded",
    ),
]  # fmt: skip


def serving(profile, reply=REPLY):
    return Simulator(lambda _view: reply, profile=profile)


def assemble(answer: Answer) -> list[tuple[str, dict[str, Any]]]:
    """Put tool calls together as a tolerant client must: an event with an id begins a new call."""
    calls: list[list[str]] = []
    for parts in answer.deltas("tool_calls"):
        for part in parts:
            if "id" in part:
                calls.append([part["function"]["name"], ""])
            calls[-1][1] += part["function"].get("arguments", "")
    return [(name, json.loads(arguments)) for name, arguments in calls]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.profile)
def test_a_stream_has_the_shape_of_its_server(row):
    with serving(row.profile) as simulator:
        answer = stream(simulator.base_url)
    assert "".join(answer.deltas("content")) == REPLY.text
    assert "".join(answer.deltas(row.reasoning or "reasoning")) == (REPLY.reasoning if row.reasoning else "")
    assert assemble(answer) == [("glob", {"pattern": "**/*.py"}), ("read", {"path": "ä b.txt"})]
    events = [part for parts in answer.deltas("tool_calls") for part in parts]
    firsts = [part for part in events if "id" in part]
    assert [part["index"] for part in firsts] == row.call_indexes
    assert all(part["id"].startswith(row.call_prefix) for part in firsts)
    assert len(events) == row.call_events
    assert answer.finish_reasons() == ["tool_calls"]
    finishing = next(choice for choice in answer.choices() if choice["finish_reason"])
    carries = any(finishing["delta"].get(field) for field in ("content", "tool_calls"))
    assert carries is not row.finish_alone
    assert row.usage(answer.chunks)
    assert len({chunk["id"] for chunk in answer.chunks}) == 1
    assert answer.done


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.profile)
def test_an_error_status_has_the_body_of_its_server(row):
    reply = ScriptedReply(fault=Fault(FaultKind.STATUS, status=429, message="too fast"))
    with serving(row.profile, reply) as simulator:
        answer = stream(simulator.base_url)
    assert answer.status == 429
    assert row.error(answer.json)


@pytest.mark.parametrize("name", PROFILES)
def test_without_stream_every_server_answers_with_one_body(name):
    with serving(name) as simulator:
        body = chat(simulator.base_url).json
    message = body["choices"][0]["message"]
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["glob", "read"]
    assert body["choices"][0]["finish_reason"] == "tool_calls"
    assert body["usage"]["prompt_tokens"] == 50


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_names_its_source_and_its_words_for_a_wrong_key(name):
    assert PROFILES[name].source
    with Simulator(lambda _view: REPLY, profile=name, token="right") as simulator:
        answer = stream(simulator.base_url, token="wrong")
    assert answer.status == 401
    assert PROFILES[name].unauthorized in answer.raw.decode()


def test_mistral_thinks_in_parts_and_makes_short_ids():
    with serving("mistral") as simulator:
        streamed, whole = stream(simulator.base_url), chat(simulator.base_url).json["choices"][0]["message"]
    parts = [piece for content in streamed.deltas("content") if isinstance(content, list) for piece in content]
    assert {part["type"] for part in parts} == {"thinking"}
    assert "".join(part["thinking"][0]["text"] for part in parts) == REPLY.reasoning
    assert "".join(content for content in streamed.deltas("content") if isinstance(content, str)) == REPLY.text
    assert [part["type"] for part in whole["content"]] == ["thinking", "text"]
    ids = [call["id"] for call in (*whole["tool_calls"], *(part for [part] in streamed.deltas("tool_calls")))]
    assert [len(each) for each in ids] == [9, 9, 9, 9]


def test_gemini_signs_the_first_call_of_an_answer():
    with serving("gemini") as simulator:
        streamed, whole = stream(simulator.base_url), chat(simulator.base_url).json["choices"][0]["message"]
    for calls in ([part for [part] in streamed.deltas("tool_calls")], whole["tool_calls"]):
        assert ["extra_content" in call for call in calls] == [True, False]


def test_openrouter_sends_reasoning_twice_and_signs_the_first_call():
    with serving("openrouter") as simulator:
        streamed, whole = stream(simulator.base_url), chat(simulator.base_url).json["choices"][0]["message"]
    details = [detail for [detail] in streamed.deltas("reasoning_details")]
    assert "".join(detail.get("text", "") for detail in details) == REPLY.reasoning
    for found, calls in (
        (details, [part for [part] in streamed.deltas("tool_calls")]),
        (whole["reasoning_details"], whole["tool_calls"]),
    ):
        assert (found[-1]["type"], found[-1]["id"]) == ("reasoning.encrypted", calls[0]["id"])


CALL = {"id": "call_1", "type": "function", "function": {"name": "glob", "arguments": "{}"}}
SHORT = {**CALL, "id": "abcDEF123"}
FORGED = {**CALL, "extra_content": {"google": {"thought_signature": "forged"}}}


def history(call, **fields):
    answer = {"role": "assistant", "content": "", "tool_calls": [call], **fields}
    return [USER, answer, {"role": "tool", "tool_call_id": call["id"], "content": "x"}]


@pytest.mark.parametrize(
    ("name", "messages", "status", "words"),
    [
        ("groq", history(CALL, reasoning="a"), 200, ""),
        ("groq", history(CALL, reasoning_content="a"), 400, "property 'reasoning_content' is unsupported"),
        ("mistral", history(SHORT), 200, ""),
        ("mistral", history(SHORT, thinking="a"), 422, '"loc":["body","messages",1,"assistant","thinking"]'),
        ("mistral", history(CALL), 400, "must be a-z, A-Z, 0-9, with a length of 9"),
        ("gemini", history(CALL), 400, "missing a thought_signature"),
        ("gemini", history(FORGED), 400, "Corrupted thought signature"),
        ("gemini", [*history(CALL), USER], 200, ""),
        ("openrouter", history(CALL, reasoning="a"), 400, "require OpenRouter reasoning details to be preserved"),
        ("openrouter", history(CALL, reasoning_details=[{"id": "call_2", "data": "a"}]), 400, "missing a thought"),
        ("openrouter", history(CALL, reasoning_details=[{"id": "call_1", "data": "a"}]), 400, "Corrupted thought"),
        ("openrouter", [*history(CALL), USER], 200, ""),
        ("deepseek", history(CALL, reasoning_content="a"), 200, ""),
        ("deepseek", [*history(CALL), USER], 400, "must be passed back"),
    ],
)
def test_servers_refuse_earlier_answers_in_their_own_words(name, messages, status, words):
    with serving(name) as simulator:
        answer = chat(simulator.base_url, messages=messages)
    assert answer.status == status
    assert words in answer.raw.decode()


def test_openai_says_null_usage_before_the_last_event_only_when_asked():
    with serving("openai") as simulator:
        asked, unasked = stream(simulator.base_url).chunks, chat(simulator.base_url, stream=True).chunks
    assert all(chunk["usage"] is None for chunk in asked[:-1])
    assert not any("usage" in chunk for chunk in unasked)


def test_openrouter_sends_comments_before_the_first_event_and_errors_as_chunks():
    reply = replace(REPLY, fault=Fault(FaultKind.ERROR_EVENT, message="provider died"))
    with serving("openrouter", reply) as simulator:
        answer = stream(simulator.base_url)
    assert answer.blocks[0] == ": OPENROUTER PROCESSING"
    last = answer.chunks[-1]
    assert (last["error"]["message"], last["choices"][0]["finish_reason"]) == ("provider died", "error")
    assert answer.done


def test_ollama_loses_the_words_of_an_error_in_a_stream_and_just_ends():
    reply = replace(REPLY, fault=Fault(FaultKind.ERROR_EVENT, message="lost words", after=1))
    with serving("ollama", reply) as simulator:
        answer = stream(simulator.base_url)
    assert "lost words" not in answer.raw.decode()
    assert (answer.finish_reasons(), answer.done) == ([], False)


def test_vllm_sends_the_name_of_a_call_without_arguments_first():
    with serving("vllm") as simulator:
        first = stream(simulator.base_url).deltas("tool_calls")[0][0]
    assert first["function"] == {"name": "glob"}


def test_old_vllm_refuses_stream_options_and_answers_without():
    with serving("vllm-old") as simulator:
        refused = stream(simulator.base_url)
        assert refused.status == 400
        assert (refused.json["object"], "stream_options" in refused.json["message"]) == ("error", True)
        assert chat(simulator.base_url, stream=True).done


@pytest.mark.parametrize("name", ["openai", "vllm"])
def test_stream_options_without_stream_are_refused(name):
    with serving(name) as simulator:
        answer = chat(simulator.base_url, stream_options={"include_usage": True})
    assert (answer.status, answer.json["error"]["param"]) == (400, "stream_options")


def test_a_server_without_streaming_answers_with_json_though_asked_to_stream():
    with serving("no-stream") as simulator:
        answer = stream(simulator.base_url)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["choices"][0]["message"]["content"] == REPLY.text


def test_a_server_may_refuse_to_stream():
    with serving("stream-refused") as simulator:
        refused = stream(simulator.base_url)
        assert (refused.status, refused.json["error"]["param"]) == (400, "stream")
        assert chat(simulator.base_url).status == 200


def test_llamacpp_tells_the_counts_of_a_prompt_that_is_too_long():
    message = "request (9412 tokens) exceeds the available context size (8192 tokens), try increasing it"
    reply = ScriptedReply(fault=Fault(FaultKind.STATUS, status=400, message=message))
    with serving("llamacpp", reply) as simulator:
        error = stream(simulator.base_url).json["error"]
    assert (error["type"], error["n_ctx"]) == ("exceed_context_size_error", 8192)


def test_an_empty_reply_is_a_stream_without_content_in_every_streaming_profile():
    for name, profile in PROFILES.items():
        if profile.streams:
            with serving(name, ScriptedReply()) as simulator:
                answer = chat(simulator.base_url, stream=True)
            assert (answer.deltas("content"), answer.finish_reasons(), answer.done) == ([], ["stop"], True), name


def test_lone_surrogates_of_a_script_leave_as_valid_json():
    with serving("openai", ScriptedReply(text="a\ud800b")) as simulator:
        assert stream(simulator.base_url).deltas("content") == ["a\ud800b"]


def test_a_parameter_can_be_refused_in_any_profile():
    picky = replace(PROFILES["openai"], refuses={"reasoning_effort": "Unknown parameter: 'reasoning_effort'."})
    with serving(picky) as simulator:
        error = stream(simulator.base_url, reasoning_effort="low").json["error"]
    assert (error["param"], error["code"]) == ("reasoning_effort", "unknown_parameter")


def test_an_unknown_profile_is_refused_with_the_names_there_are():
    with pytest.raises(ValueError, match="llamacpp, mistral, no-stream, ollama"):
        find_profile("gpt")
