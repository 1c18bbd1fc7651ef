"""Conversations that go on with another provider's model: each is sent earlier answers as its server takes them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest

from agentmesh.domain.cancel import Cancel
from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import Row
from agentmesh.domain.states import Kind
from agentmesh.engine import recording
from agentmesh.engine.messages import message
from agentmesh.llm.bounds import MOST_EXTRA
from agentmesh.llm.openai_chat import OpenAIChat
from agentmesh.llm.port import CallFailed, ChatRequest, Reply, Watch
from agentmesh.llm.provider import Provider
from agentmesh.llm.simulator.reply import ScriptedCall, ScriptedReply
from agentmesh.llm.simulator.server import Simulator
from tests.llm.asking import AT_ONCE, TOOL, client
from tests.llm.misbehaving import Answer, Exchange, delta, error, good, misbehaving, plain, stream

DIALECTS = ("openai", "openrouter", "groq", "mistral", "gemini", "deepseek")
TWO = (ScriptedCall("bash", {"command": "ls"}), ScriptedCall("bash", {"command": "pwd"}))


class Talk:
    """A conversation as rows, and what each provider was sent of it."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._agent = AgentId(uuid4())

    def add(self, kind: Kind, content: dict[str, Any]) -> None:
        stored = json.loads(json.dumps(content))
        self.rows.append(Row(self._agent, len(self.rows) + 1, kind, stored))

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [shown for row in self.rows if (shown := message(row))]

    def turn(self, model: OpenAIChat) -> list[Reply]:
        """Let a model call tools, and then answer; return both answers."""
        self.add(Kind.USER, {"text": "look"})
        replies: list[Reply] = []
        while not replies or replies[-1].tool_calls:
            request = ChatRequest("m-1", self.messages, [TOOL])
            replies.append(model.complete(request, Cancel(), Watch()))
            self.add(Kind.ASSISTANT, recording.content(replies[-1]))
            for call in replies[-1].tool_calls:
                self.add(Kind.TOOL_RESULT, {"call_id": call.id, "name": call.name, "result": {"output": "x"}})
        return replies


def answer(view: Any) -> ScriptedReply:
    if view.step % 2:
        return ScriptedReply("There are two.", reasoning="Now I know.")
    return ScriptedReply("", reasoning="Let me look.", tool_calls=TWO)


@contextmanager
def dialect(name: str) -> Iterator[tuple[Simulator, OpenAIChat]]:
    with Simulator(answer, profile=name) as server:
        model = OpenAIChat(Provider(name, server.base_url, api_key="key-0123456789"), AT_ONCE)
        try:
            yield server, model
        finally:
            model.close()


def prefixes(requests: Sequence[Any]) -> bool:
    """Whether each request begins with the one before it, so that a server's cache of it is used."""
    begun = [request.raw.rstrip(b"]}") for request in requests]
    return all(later.startswith(earlier) for earlier, later in itertools.pairwise(begun))


@pytest.mark.parametrize("name", DIALECTS)
def test_a_conversation_with_one_provider_is_refused_nothing(name):
    talk = Talk()
    with dialect(name) as (server, model):
        for _ in range(3):
            talk.turn(model)
        assert (server.count, model.refused("m-1")) == (6, frozenset())
        assert prefixes(server.requests)


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(DIALECTS, 2)))
def test_a_conversation_goes_on_with_the_model_of_another_provider(first, second):
    talk = Talk()
    with dialect(first) as (_, model):
        talk.turn(model)
    with dialect(second) as (server, other):
        asked, called = talk.turn(other)
        refused = server.count - 2
        assert len(other.refused("m-1")) == refused
        assert sum("in another form" in note for note in asked.notes) == refused
        assert called.notes == ()
        talk.turn(other)
        talk.turn(other)
        assert server.count == 6 + refused, "a refusal is learned once"
        assert prefixes(server.requests[refused:])


def test_what_gemini_sends_with_a_call_is_sent_back_with_it():
    talk = Talk()
    with dialect("gemini") as (server, model):
        first, _ = talk.turn(model)
        sent = server.requests[1].body["messages"][1]["tool_calls"]
    assert first.tool_calls[0].extra is not None
    assert [call.get("extra_content") for call in sent] == [first.tool_calls[0].extra, None]


def test_reasoning_that_came_in_parts_is_shown_and_not_sent_back():
    talk = Talk()
    with dialect("mistral") as (server, model):
        first, _ = talk.turn(model)
        sent = server.requests[1].body["messages"][1]
    assert (first.reasoning, first.reasoning_field) == ("Let me look.", "")
    assert set(sent) == {"role", "content", "tool_calls"}


def test_mistral_gets_the_same_short_id_for_a_call_and_its_result():
    talk = Talk()
    with dialect("openai") as (_, model):
        stored = [call.id for call in talk.turn(model)[0].tool_calls]
    with dialect("mistral") as (server, other):
        talk.turn(other)
        sent = server.requests[-1].body["messages"]
    ids = [call["id"] for call in sent[1]["tool_calls"]]
    assert ids == [each["tool_call_id"] for each in sent[2:4]]
    assert [len(each) for each in ids] == [9, 9]
    assert [call["id"] for call in talk.messages[1]["tool_calls"]] == stored


def test_deepseek_gets_reasoning_that_came_in_another_field():
    talk = Talk()
    with dialect("groq") as (_, model):
        talk.turn(model)
    with dialect("deepseek") as (server, other):
        talk.turn(other)
        sent = server.requests[-1].body["messages"][1]
    assert sent["reasoning_content"] == "Let me look."
    assert "reasoning" not in sent


def test_gemini_is_told_not_to_check_the_calls_of_another_model():
    talk = Talk()
    talk.add(Kind.USER, {"text": "look"})
    calls = [{"id": "a", "name": "bash", "arguments": "{}"}, {"id": "b", "name": "bash", "arguments": "{}"}]
    talk.add(Kind.ASSISTANT, {"text": "", "calls": calls})
    for each in ("a", "b"):
        talk.add(Kind.TOOL_RESULT, {"call_id": each, "name": "bash", "result": {}})
    with dialect("gemini") as (server, model):
        model.complete(ChatRequest("m-1", talk.messages, [TOOL]), Cancel(), Watch())
        sent = server.requests[-1].body["messages"][1]["tool_calls"]
    assert sent[0]["extra_content"]["google"]["thought_signature"] == "skip_thought_signature_validator"
    assert "extra_content" not in sent[1]


def test_a_signature_that_gemini_did_not_make_is_exchanged():
    talk = Talk()
    with dialect("gemini") as (server, model):
        talk.add(Kind.USER, {"text": "look"})
        extra = {"google": {"thought_signature": "of another server"}}
        calls = [{"id": "a", "name": "bash", "arguments": "{}", "extra_content": extra}]
        talk.add(Kind.ASSISTANT, {"text": "", "calls": calls})
        talk.add(Kind.TOOL_RESULT, {"call_id": "a", "name": "bash", "result": {}})
        model.complete(ChatRequest("m-1", talk.messages, [TOOL]), Cancel(), Watch())
        sent = server.requests[-1].body["messages"][1]["tool_calls"]
        assert model.refused("m-1") == {"signatures of other servers"}
    assert sent[0]["extra_content"]["google"]["thought_signature"] == "skip_thought_signature_validator"


def test_what_openrouter_sends_with_an_answer_is_sent_back_in_place_of_the_reasoning():
    talk = Talk()
    with dialect("openrouter") as (server, model):
        first, last = talk.turn(model)
        talk.turn(model)
        sent = server.requests[2].body["messages"]
    thoughts = {"type": "reasoning.text", "text": "Let me look.", "format": "google-gemini-v1", "index": 0}
    assert (first.reasoning, list(first.details)) == ("Let me look.", [thoughts, sent[1]["reasoning_details"][1]])
    assert sent[1].keys() == {"role", "content", "tool_calls", "reasoning_details"}
    assert (last.details, sent[4]["reasoning"]) == ((), "Now I know."), "words alone are sent back as ever"


def test_the_details_of_a_call_get_the_id_that_it_is_given():
    long = ScriptedReply("", tool_calls=(ScriptedCall("bash", {"command": "ls"}, id="tool_" * 20),))
    answers = iter((long, long, ScriptedReply("done")))
    with Simulator(lambda _view: next(answers), profile="openrouter") as server:
        model = OpenAIChat(Provider("openrouter", server.base_url, api_key="key-0123456789"), AT_ONCE)
        replies = Talk().turn(model)
        model.close()
    for reply in replies[:2]:
        assert len(reply.tool_calls[0].id) == 9
        assert [each["id"] for each in reply.details] == [reply.tool_calls[0].id]
    assert server.count == 3, "no request was refused"


CLAUDES = {"type": "reasoning.text", "text": "a", "signature": "b", "format": "anthropic-claude-v1", "index": 0}
GOOGLES = {"type": "reasoning.encrypted", "data": "b", "id": "call_1", "format": "google-gemini-v1", "index": 0}
UNCHECKED = {**GOOGLES, "data": "skip_thought_signature_validator"}
LACKING = "Gemini models require OpenRouter reasoning details to be preserved in each request."
INVALID = "messages.1.content.0: Invalid `signature` in `thinking` block"
NOT_VALID = "Unable to submit request because Thought signature is not valid."


@pytest.mark.parametrize(
    ("said", "details", "called", "then"),
    [
        (LACKING, None, True, [UNCHECKED]),
        (LACKING, [CLAUDES], True, [UNCHECKED]),
        (NOT_VALID, [GOOGLES], True, [UNCHECKED]),
        (NOT_VALID, [GOOGLES], False, None),
        (INVALID, [CLAUDES], True, None),
        ("property 'messages.1.reasoning_details' is unsupported", [GOOGLES], True, None),
    ],
    ids=["missing", "of Claude", "of another Gemini", "of a text", "of another Claude", "unknown field"],
)
def test_details_that_a_server_refuses_are_exchanged_once_and_for_all(said, details, called, then):
    request_ = earlier(*([CALL] if called else []), **({"reasoning_details": details} if details else {}))
    raw = {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": said}}}
    with misbehaving(plain(raw, status=400), good(), good()) as server:
        model = client(server)
        for _ in range(2):
            model.complete(request_, Cancel(), Watch())
        model.close()
        assert len(model.refused("m-1")) == 1
    assert [seen.json["messages"][1].get("reasoning_details") for seen in server.chats] == [details, then, then]


CALL = {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
SIGNED = {**CALL, "extra_content": {"google": {"thought_signature": "abc"}}}
MISTRAL = {"type": "extra_forbidden", "loc": ["body", "messages", 1, "assistant", "reasoning"], "msg": "Extra inputs"}


def earlier(*calls: dict[str, Any], **fields: Any) -> ChatRequest:
    """Return a request whose first answer has these fields."""
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "x"} for call in calls]
    shown = {"role": "assistant", "content": "", **fields, **({"tool_calls": list(calls)} if calls else {})}
    return ChatRequest("m-1", [{"role": "user", "content": "hi"}, shown, *results], [TOOL])


@pytest.mark.parametrize(
    ("said", "request_", "status", "refused"),
    [
        ("messages[1].reasoning: reasoning is not supported with this model", earlier(reasoning="a"), 400, "reasoning"),
        ("property 'messages.1.reasoning' is unsupported", earlier(reasoning="a"), 400, "reasoning"),
        ("Unknown parameter: 'messages[1].thinking'.", earlier(thinking="a"), 400, "thinking"),
        (
            "Invalid JSON payload received. Unknown name \"reasoning\" at 'messages[1]': Cannot find field.",
            earlier(reasoning="a"),
            400,
            "reasoning",
        ),
        (json.dumps({"detail": [MISTRAL]}), earlier(reasoning="a"), 422, "reasoning"),
        (
            "Extra inputs are not permitted, field: 'messages[1].tool_calls[0].extra_content', value: {}",
            earlier(SIGNED),
            400,
            "extra_content",
        ),
    ],
    ids=["groq", "cerebras", "openai", "gemini", "mistral", "fireworks"],
)  # fmt: skip
def test_a_field_of_a_message_that_is_refused_is_left_out_once_and_for_all(said, request_, status, refused):
    with misbehaving(error(status, said), good(), good()) as server:
        model = client(server)
        for _ in range(2):
            model.complete(request_, Cancel(), Watch())
        model.close()
        assert model.refused("m-1") == {f"messages.{refused}"}
    assert [f'"{refused}"' in seen.body.decode() for seen in server.chats] == [True, False, False]


@pytest.mark.parametrize(
    "said",
    [
        "Missing `reasoning_content` field in the assistant message at message index 1.",
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
    ],
    ids=["deepseek", "moonshot"],
)
def test_a_thinking_model_gets_a_placeholder_where_there_was_no_reasoning(said):
    with misbehaving(error(400, said), good()) as server:
        model = client(server)
        model.complete(earlier(CALL), Cancel(), Watch())
        model.close()
    assert [seen.json["messages"][1].get("reasoning_content") for seen in server.chats] == [None, " "]


@pytest.mark.parametrize("status", [400, 404, 500])
@pytest.mark.parametrize(
    "said",
    [
        "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
        "Tool call IDs should be alphanumeric strings with length 9!",
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ],
    ids=["mistral", "template", "anthropic"],
)
def test_ids_that_a_server_refuses_are_exchanged_for_short_ones(said, status):
    with misbehaving(error(status, said), good()) as server:
        model = client(server)
        model.complete(earlier(CALL), Cancel(), Watch())
        model.close()
        first, second = (seen.json["messages"] for seen in server.chats)
    assert first[1]["tool_calls"][0]["id"] == "call_1"
    assert second[1]["tool_calls"][0]["id"] == second[2]["tool_call_id"] != "call_1"
    assert len(second[2]["tool_call_id"]) == 9


@pytest.mark.parametrize(
    "said",
    [
        "property 'messages.1.reasoning_content' is unsupported",
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        "Function call is missing a thought_signature in functionCall parts.",
        "Corrupted thought signature.",
        "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
    ],
)
def test_a_server_that_refuses_the_other_form_too_is_asked_no_further(said):
    with misbehaving(error(400, said)) as server:
        model = client(server)
        with pytest.raises(CallFailed) as caught:
            model.complete(earlier(SIGNED, reasoning_content="a"), Cancel(), Watch())
        model.close()
    assert caught.value.kind == "bad_request"
    assert len(server.chats) <= 2


def test_a_parameter_of_the_same_name_is_no_field_of_a_message():
    said = {"error": {"message": "property 'reasoning' is unsupported", "param": "reasoning"}}
    with misbehaving(plain(said, status=400), good()) as server:
        model = client(server, extra_body={"reasoning": {"effort": "low"}})
        model.complete(earlier(reasoning="a"), Cancel(), Watch())
        model.close()
        first, second = (seen.json for seen in server.chats)
    assert ("reasoning" in first, "reasoning" in second) == (True, False)
    assert second["messages"][1]["reasoning"] == "a"


@pytest.mark.parametrize(
    ("extra", "kept"),
    [
        ({"google": {"thought_signature": "a\x00b"}}, {"google": {"thought_signature": "a\ufffdb"}}),
        ({"google": {"thought_signature": "x" * MOST_EXTRA}}, None),
        ("text", None),
        ({}, None),
    ],
    ids=["storable", "too long", "no object", "empty"],
)
def test_what_comes_with_a_call_is_kept_if_it_can_be(extra, kept):
    call = {"index": 0, **CALL, "extra_content": extra}
    with misbehaving(stream(delta(tool_calls=[call]), delta("tool_calls"))) as server:
        model = client(server)
        reply = model.complete(earlier(), Cancel(), Watch())
        model.close()
    assert reply.tool_calls[0].extra == kept
    assert reply.finish_reason == "tool_calls"


UNKNOWN = "property 'messages.1.reasoning_content' is unsupported"
WANTED = "The `reasoning_content` in the thinking mode must be passed back to the API."


def refusing(said: str, *, has_reasoning: bool) -> Answer:
    """Answer unless the request's earlier answer has, or lacks, its reasoning."""

    def answer(exchange: Exchange) -> None:
        has = "reasoning_content" in exchange.mesh.chats[-1].json["messages"][1]
        (error(400, said) if has == has_reasoning else good())(exchange)

    return answer


TAKES_NONE = refusing(UNKNOWN, has_reasoning=True)
TAKES_ALL = refusing(WANTED, has_reasoning=False)


@pytest.mark.parametrize(
    ("servers", "asked"),
    [((TAKES_NONE, TAKES_ALL) * 8, 6), ((TAKES_NONE, TAKES_ALL, TAKES_ALL, TAKES_NONE, TAKES_NONE, TAKES_NONE), 7)],
    ids=["by turns", "drawn"],
)
def test_a_gateway_whose_servers_contradict_each_other_is_asked_until_one_answers(servers, asked):
    with misbehaving(*servers) as server:
        model = client(server)
        replies = [model.complete(earlier(CALL, reasoning_content="a"), Cancel(), Watch()) for _ in range(2)]
        model.close()
    assert [reply.text for reply in replies] == ["Hello", "Hello"]
    assert any("contradicts itself" in note for reply in replies for note in reply.notes)
    assert len(server.chats) == asked


def test_what_was_refused_last_counts_for_the_next_call():
    with misbehaving(TAKES_NONE, TAKES_NONE, TAKES_ALL) as server:
        model = client(server)
        for _ in range(3):
            model.complete(earlier(CALL, reasoning_content="a"), Cancel(), Watch())
        assert model.refused("m-1") == {"answers without reasoning_content"}
        model.close()
    assert len(server.chats) == 5


def test_a_server_that_refuses_both_forms_by_turns_is_named_as_contradictory():
    forms = [refusing(UNKNOWN, has_reasoning=True), refusing(WANTED, has_reasoning=False)]

    def both(exchange: Exchange) -> None:
        has = "reasoning_content" in exchange.mesh.chats[-1].json["messages"][1]
        forms[0 if has else 1](exchange)

    with misbehaving(both) as server:
        model = client(server)
        with pytest.raises(CallFailed) as caught:
            model.complete(earlier(CALL, reasoning_content="a"), Cancel(), Watch())
        model.close()
    assert len(server.chats) == 7
    assert "refuses messages.reasoning_content and answers without reasoning_content" in caught.value.message
    assert "Different servers" in caught.value.hint
