"""What a server can, found out by a few requests: each kind of server says something else."""

from __future__ import annotations

from typing import Any

import pytest

from agentmesh.domain.cancel import Cancel
from agentmesh.llm.port import CallFailed
from agentmesh.llm.probe import Probe
from agentmesh.llm.provider import Provider
from tests.llm.misbehaving import Answer, Exchange, cut, delta, error, misbehaving, plain, stream

CALL = [{"index": 0, "id": "a", "function": {"name": "write_down", "arguments": '{"colour": "blue"}'}}]
AS_TEXT = '{"name": "write_down", "arguments": {"colour": "blue"}}'
CACHED = {"prompt_tokens_details": {"cached_tokens": 64}}


class Model:
    """A server that answers by what is asked."""

    def __init__(self, *, streams=True, wants_auto=False, forced="tool_choice", keeps=True, usage=True, calls=True):
        self.streams = streams
        self.wants_auto = wants_auto
        self.forced = forced
        self.keeps = keeps
        self.usage = usage
        self.calls = calls
        self.seen: set[str] = set()

    def __call__(self, exchange: Exchange) -> None:
        asked = exchange.mesh.chats[-1].json
        reads = "tools" in asked and (not self.wants_auto or "tool_choice" in asked)
        usage: dict[str, Any] = {"prompt_tokens": 90 if reads else 20, "completion_tokens": 5}
        prompt = str([asked.get("tools"), asked["messages"]])
        if self.keeps and prompt in self.seen:
            usage |= CACHED
        self.seen.add(prompt)
        is_forced = asked.get("tool_choice") == "required" and self.forced == "tool_choice"
        wants_call = "blue" in asked["messages"][0]["content"]
        message: dict[str, Any] = {"content": "Hello"}
        if reads and (is_forced or (wants_call and self.calls)):
            message = {"tool_calls": CALL}
        elif "response_format" in asked and self.forced == "response_format":
            message = {"content": AS_TEXT}
        self.answer(asked, message, usage if self.usage else None)(exchange)

    def answer(self, asked: dict[str, Any], message: dict[str, Any], usage: Any) -> Answer:
        if not asked.get("stream"):
            return plain({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})
        said = message if self.streams or "tools" not in asked else {"role": "assistant"}
        counted = [{"choices": [], "usage": usage}] if usage else []
        return stream(delta(**said), delta("stop"), *counted)


def probe(*answers: Answer, props: Any = None, slots: Any = None, listed: Any = (), **fields: Any) -> dict[str, Any]:
    with misbehaving(*answers) as server:
        server.models += listed
        none = plain({"error": "none"}, status=404)
        server.documents |= {
            "/props": none if props is None else plain(props),
            "/slots": none if slots is None else plain(slots),
        }
        found: dict[str, Any] = {}
        for finding in Probe(Provider("acme", server.url, **fields), "m-1", Cancel()).run():
            found |= finding.facts
        return found


GOOD = {
    "streams": True,
    "caches": True,
    "needs_choice": False,
    "forced_calls": "tool_choice",
    "slots": None,
    "context_window": None,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "differs"),
    [
        (Model(), {}),
        (Model(streams=False), {"streams": False}),
        (Model(wants_auto=True), {"needs_choice": True}),
        (Model(wants_auto=True, streams=False), {"needs_choice": True, "streams": False}),
        (Model(wants_auto=True, usage=False, keeps=False), {"needs_choice": True, "caches": None}),
        (Model(forced="response_format"), {"forced_calls": "response_format"}),
        (Model(forced="prayer"), {"forced_calls": "none"}),
        (Model(keeps=False), {"caches": None}),
        (Model(calls=False), {}),
        (Model(calls=False, usage=False), {"caches": None, "needs_choice": None}),
    ],
    ids=["good", "no stream", "auto", "auto, no stream", "no usage", "format", "none", "forgets", "words", "silent"],
)
def test_each_kind_of_server_is_known(model, differs):
    assert probe(model) == GOOD | differs


PROPS = {"total_slots": 2, "default_generation_settings": {"n_ctx": 4096}}


@pytest.mark.parametrize(
    ("says", "found"),
    [
        ({"props": PROPS}, (2, 4096)),
        ({"slots": [{}, {}, {}]}, (3, None)),
        ({"props": PROPS, "listed": [{"id": "m-1", "meta": {"n_ctx": 2048}}]}, (2, 2048)),
        ({"props": {"total_slots": -3}, "slots": {"error": "off"}}, (None, None)),
        ({"props": "<html>", "slots": "<html>"}, (None, None)),
        ({"listed": [{"id": "m-1", "max_model_len": 32_768}]}, (None, 32_768)),
    ],
)
def test_what_a_server_says_of_itself(says, found):
    facts = probe(Model(), **says)
    assert (facts["slots"], facts["context_window"]) == found


def test_what_is_configured_does_not_hide_what_the_server_can():
    configured = {"stream": False, "tool_choice": "auto", "slots": 9, "context_window": 99}
    assert probe(Model(wants_auto=True), **configured) == GOOD | {"needs_choice": True}


def test_a_server_that_refuses_constraints_has_none():
    refusing = Model()

    def answer(exchange: Exchange) -> None:
        asked = exchange.mesh.chats[-1].json
        if asked.keys() & {"response_format"} or asked.get("tool_choice") == "required":
            plain({"error": {"message": "failed to parse grammar"}}, status=400)(exchange)
        else:
            refusing(exchange)

    assert probe(answer)["forced_calls"] == "none"


def test_a_connection_that_breaks_between_two_requests_is_no_refusal():
    """Real llama.cpp closed one after the second request, so its tools were not known."""
    model, broken = Model(), 0

    def answer(exchange: Exchange) -> None:
        nonlocal broken
        if "tools" not in exchange.mesh.chats[-1].json and not broken:
            broken += 1
            exchange.close_connection = True
        else:
            model(exchange)

    assert probe(answer)["needs_choice"] is False
    assert broken == 1


@pytest.mark.parametrize(
    "answer",
    [error(401, "no"), error(500, "broken"), error(404, "no such model"), cut()],
    ids=["key", "broken", "no model", "cut"],
)
def test_a_server_that_does_not_answer_is_an_error(answer):
    with pytest.raises(CallFailed):
        probe(answer)


def test_a_server_that_answers_nothing_at_all_is_told_so():
    assert probe(stream())["streams"] is None
