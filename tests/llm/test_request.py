"""The bytes of requests: deterministic, equal as far as the conversations are."""

from __future__ import annotations

import json

import pytest

from agentmesh.llm.port import ChatRequest
from agentmesh.llm.request import Quirks, encode, parameters
from tests.llm.asking import TOOL


def body(request: ChatRequest, quirks: Quirks | None = None) -> bytes:
    return encode(parameters(request, quirks or Quirks()), request)


def chat(*words: str, **settings) -> ChatRequest:
    return ChatRequest("m", [{"role": "user", "content": word} for word in words], [TOOL], settings)


def test_same_request_is_the_same_bytes_whatever_the_order_of_its_settings():
    assert body(chat("a", temperature=0, seed=1)) == body(chat("a", seed=1, temperature=0))


def test_equal_messages_are_equal_bytes_up_to_where_they_part():
    parent, child = body(chat("system", "héllo", "parent")), body(chat("system", "héllo", "child", "more"))
    common = parent[: parent.index(b"parent")]
    assert child.startswith(common)
    assert common.endswith('"content":"héllo"},{"role":"user","content":"'.encode())


def test_settings_cannot_replace_what_the_engine_sends():
    sent = json.loads(body(chat("a", messages=[], model="x", tools=[])))
    assert (sent["model"], len(sent["messages"]), len(sent["tools"])) == ("m", 1, 1)


def test_no_tools_are_not_sent_as_an_empty_list():
    assert "tools" not in json.loads(body(ChatRequest("m", [])))


def test_settings_that_are_none_are_left_out():
    assert "seed" not in json.loads(body(chat("a", seed=None)))


def test_streaming_can_be_switched_off():
    sent = json.loads(body(chat("a", stream=False)))
    assert {"stream", "stream_options"}.isdisjoint(sent)


def test_refused_later_name_is_left_out_too():
    quirks = Quirks().learn("max_tokens", "use max_completion_tokens").learn("max_completion_tokens", "no")
    assert {"max_tokens", "max_completion_tokens"}.isdisjoint(json.loads(body(chat("a", max_tokens=1), quirks)))


@pytest.mark.parametrize(
    ("given", "sent"),
    [("a\x00b", "a\ufffdb"), ("a\ud800b", "a\ufffdb"), ("a\\u0000b", "a\\u0000b"), ("😀\u2028", "😀\u2028")],
    ids=["nul", "surrogate", "written escape", "fine"],
)
def test_text_that_no_server_takes_is_replaced(given, sent):
    assert json.loads(body(chat(given)))["messages"][0]["content"] == sent
