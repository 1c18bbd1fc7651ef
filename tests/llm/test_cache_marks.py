"""Marks for servers that keep a request in their cache only if it says up to where."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmesh.domain.cancel import Cancel
from agentmesh.llm.cache_marks import are_wanted, marked
from agentmesh.llm.port import ChatRequest, Watch
from agentmesh.llm.provider import Provider
from tests.llm.asking import TOOL, ask, client, request
from tests.llm.misbehaving import error, good, misbehaving

SYSTEM = {"role": "system", "content": "You are one of several agents."}
CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def step(text: str = "result") -> list[dict[str, Any]]:
    return [
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": text},
    ]


def where(messages: Sequence[Mapping[str, Any]]) -> list[int]:
    return [n for n, message in enumerate(messages) if "cache_control" in json.dumps(message)]


@pytest.mark.parametrize(
    ("url", "model", "wanted"),
    [
        ("https://openrouter.ai/api/v1", "anthropic/claude-sonnet-4.5", True),
        ("https://openrouter.ai/api/v1", "openai/gpt-5", False),
        ("https://notopenrouter.ai/api/v1", "claude", False),
        ("http://127.0.0.1:4000", "claude-sonnet", False),
    ],
)
def test_claude_at_openrouter_needs_them(url, model, wanted):
    assert are_wanted(Provider("p", url), model) is wanted
    assert are_wanted(Provider("p", url, cache_marks=True), model)
    assert not are_wanted(Provider("p", url, cache_marks=False), model)


def test_they_end_the_system_prompt_this_request_and_the_one_before():
    assert where(marked([SYSTEM, user("go")])) == [0, 1]
    assert where(marked([SYSTEM, user("go"), *step()])) == [0, 1, 3]
    assert where(marked([SYSTEM, user("go"), *step(), *step(), user("and?")])) == [0, 3, 6]


def test_a_mark_is_in_the_last_text_of_a_message():
    (one,) = marked(
        [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}]}]
    )
    assert one["content"][0] == {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    assert "cache_control" not in one["content"][1]


@given(
    st.lists(
        st.one_of(
            st.builds(user, st.text(max_size=3)),
            st.builds(lambda text: step(text)[1], st.text(max_size=3)),
            st.builds(lambda: step()[0]),
            st.builds(lambda: {"role": "user", "content": []}),
            st.builds(lambda: {"role": "assistant", "content": None, "tool_calls": [CALL]}),
        ),
        max_size=8,
    )
)
def test_nothing_else_changes_and_no_empty_text_has_a_mark(messages):
    before = json.dumps(messages)
    found = marked(messages)
    assert json.dumps(messages) == before
    assert len(where(found)) <= 3
    for old, new in zip(messages, found, strict=True):
        texts = new["content"] if isinstance(new["content"], list) else []
        assert all(part["text"] for part in texts if "cache_control" in part)
        if isinstance(old["content"], str) and texts:
            assert [part["text"] for part in texts] == [old["content"]]


def test_a_server_gets_them():
    with misbehaving(good()) as server:
        ask(server, cache_marks=True)
    assert where(server.chats[-1].json["messages"]) == [0]


def test_a_server_that_refuses_them_is_asked_without_once_and_for_all():
    with misbehaving(error(400, "Unrecognized request argument supplied: cache_control"), good(), good()) as server:
        model = client(server, cache_marks=True)
        for _ in range(2):
            model.complete(request(), Cancel(), Watch())
        model.close()
    assert [where(seen.json["messages"]) for seen in server.chats] == [[0], [], []]


def test_what_a_fork_inherits_ends_near_a_mark_of_its_parent():
    shared = [SYSTEM, user("long work"), *step()]
    parent, child = marked(shared), marked([*shared, user("You are a fork."), user("your task")])
    assert where(parent)[-1] == len(shared) - 1
    assert where(child)[-1] - where(parent)[-1] <= 2
    assert ChatRequest("m", child, [TOOL]).messages[: len(shared) - 1][0] == parent[0]
