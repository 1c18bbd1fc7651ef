"""What small and local servers need: settings of their own, streams that may be empty, forced calls, their window."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from agentmesh.domain.cancel import Cancel, CancelReason
from agentmesh.domain.rows import Capability
from agentmesh.llm import openai_chat
from agentmesh.llm.capabilities import Capabilities
from agentmesh.llm.openai_chat import OpenAIChat
from agentmesh.llm.pauses import Visit
from agentmesh.llm.port import CallCancelled, CallFailed, ChatRequest, Reply, Watch
from agentmesh.llm.provider import Provider
from agentmesh.llm.slots import Slots
from tests.llm.asking import AT_ONCE, client, request
from tests.llm.misbehaving import PATIENCE, Server, cut, delta, good, hanging, misbehaving, plain, stream, text

WORDLESS = stream(delta(role="assistant"), delta("tool_calls"))
WHOLE = plain(
    {
        "choices": [
            {
                "message": {"tool_calls": [{"id": "a", "function": {"name": "bash", "arguments": "{}"}}]},
                "finish_reason": "tool_calls",
            }
        ]
    }
)


def refusal(parameter: str):
    return plain({"error": {"message": f"{parameter} is not supported", "param": parameter}}, status=400)


def complete(server: Server, times: int = 1, asked: ChatRequest | None = None, **fields: Any) -> list[Reply]:
    model = client(server, **fields)
    try:
        return [model.complete(asked or request(), Cancel(), Watch()) for _ in range(times)]
    finally:
        model.close()


def test_settings_of_a_provider_are_sent_and_those_of_a_request_come_first():
    with misbehaving(good()) as server:
        fields: dict[str, Any] = {
            "tool_choice": "auto",
            "temperature": 0.2,
            "max_tokens": 99,
            "extra_body": {"top_k": 20, "seed": 1},
        }
        complete(server, asked=request(seed=7), **fields)
        complete(server, asked=replace(request(), tools=()), **fields)
    first, second = (seen.json for seen in server.chats)
    assert {
        "tool_choice": "auto",
        "temperature": 0.2,
        "max_tokens": 99,
        "top_k": 20,
        "seed": 7,
    }.items() <= first.items()
    assert "tool_choice" not in second
    assert (first["stream"], first["model"]) == (True, "m-1")


def test_a_server_that_shall_not_stream_is_not_asked_to():
    with misbehaving(WHOLE) as server:
        (reply,) = complete(server, stream=False)
    assert [call.name for call in reply.tool_calls] == ["bash"]
    assert "stream" not in server.chats[0].json
    assert "stream_options" not in server.chats[0].json


def test_an_empty_stream_is_asked_for_as_a_whole_and_two_of_them_are_enough():
    with misbehaving(WORDLESS, WHOLE, WORDLESS, WHOLE, WHOLE) as server:
        replies = complete(server, times=3)
    assert [[call.name for call in reply.tool_calls] for reply in replies] == [["bash"]] * 3
    assert ["stream" in seen.json for seen in server.chats] == [True, False, True, False, False]


def test_a_model_that_was_wordless_once_is_streamed_again():
    with misbehaving(WORDLESS, WHOLE, good(), WORDLESS, WHOLE, good()) as server:
        complete(server, times=4)
    assert ["stream" in seen.json for seen in server.chats] == [True, False, True, True, False, True]


def test_a_call_is_forced_by_what_the_server_has():
    forced = replace(request(), must_call=True)
    call = '{"name": "bash", "arguments": {}}'
    with misbehaving(refusal("tool_choice"), good(call), good(call), refusal("response_format"), good()) as server:
        replies = complete(server, times=3, asked=forced)
    first, second, third, fourth, last = (seen.json for seen in server.chats)
    assert first["tool_choice"] == "required"
    assert second["response_format"]["json_schema"]["schema"]["properties"]["name"]["enum"] == ["bash"]
    assert ("tool_choice" in second, "tool_choice" in third) == (False, False)
    assert "response_format" in fourth
    assert "response_format" not in last
    assert [len(reply.tool_calls) for reply in replies] == [1, 1, 0]


GRAMMARS = [
    (400, "Failed to initialize samplers: failed to parse grammar"),
    (400, "JSON schema conversion failed: Unrecognized schema"),
    (500, "Unable to parse grammar at position 17"),
    (422, "The grammar is too complex"),
    (400, "Structured output is not supported by this backend"),
]


@pytest.mark.parametrize(("status", "said"), GRAMMARS)
def test_a_grammar_that_the_server_refuses_is_left_out(status, said):
    refused = plain({"error": {"code": status, "message": said, "type": "invalid_request_error"}}, status=status)
    forced = replace(request(), must_call=True)
    with misbehaving(refused, refused, good("I would call bash.")) as server:
        (reply,) = complete(server, asked=forced)
    sent = [{"tool_choice", "response_format"} & seen.json.keys() for seen in server.chats]
    assert sent == [{"tool_choice"}, {"response_format"}, set()]
    assert (reply.text, reply.tool_calls) == ("I would call bash.", ())


def test_a_call_that_was_not_forced_fails_with_the_servers_words_on_grammars():
    refused = plain({"error": {"message": "failed to parse grammar"}}, status=400)
    with misbehaving(refused) as server, pytest.raises(CallFailed, match="failed to parse grammar"):
        complete(server, tool_choice="auto")
    assert len(server.chats) == 1


def test_a_way_to_force_a_call_that_brings_none_is_not_used_again():
    forced = replace(request(), must_call=True)
    with misbehaving(good("I would call bash.")) as server:
        complete(server, times=4, asked=forced)
    sent = [{"tool_choice", "response_format"} & seen.json.keys() for seen in server.chats]
    assert sent == [{"tool_choice"}, {"response_format"}, set(), set()]


def test_a_forced_call_overrides_what_the_provider_says_of_tools():
    with misbehaving(good()) as server:
        complete(server, asked=replace(request(), must_call=True), tool_choice="auto")
        complete(server, asked=replace(request(), must_call=True, tools=()))
    assert server.chats[0].json["tool_choice"] == "required"
    assert "tool_choice" not in server.chats[1].json


@pytest.mark.parametrize(
    ("listed", "window"),
    [
        ([{"id": "m-1", "meta": {"n_ctx": 8192, "n_ctx_train": 32768}}], 8192),
        ([{"id": "/models/x.gguf", "meta": {"n_ctx": 8192}}], 8192),
        ([{"id": "m-0", "max_model_len": 4096}, {"id": "m-1", "max_model_len": 2048}], 2048),
        ([{"id": "m-0", "max_model_len": 4096}, {"id": "m-2"}], None),
        ([{"id": "m-1", "meta": {"n_ctx": 0}}], None),
        ([{"id": "m-1", "meta": {"n_ctx": -1}}], None),
        ([{"id": "m-1", "meta": {"n_ctx": True}}], None),
        ([{"id": "m-1", "meta": {"n_ctx": "many"}}], None),
        ([{"id": "m-1", "meta": {"n_ctx": 10**18}}], None),
        ([{"id": "m-1", "meta": None}], None),
        (["m-1"], None),
        ([], None),
    ],
)
def test_the_window_is_what_the_server_lists_and_is_asked_for_once(listed, window):
    with misbehaving(good()) as server:
        server.models += listed
        model = client(server)
        assert model.context_window("m-1") is None
        for _ in range(2):
            model.complete(request(), Cancel(), Watch())
        assert model.context_window("m-1") == window
        model.close()
    assert len(server.seen) - len(server.chats) == 1


@pytest.mark.parametrize(
    "answer",
    [
        plain("[" * 100_000),
        plain("<html>"),
        plain("null"),
        plain('{"data": {"id": 1}}'),
        plain('{"data": [null, {}, {"id": null}, {"id": ["m-1"]}]}'),
        cut("half"),
        plain("no", status=500),
        plain("later", status=429, retry_after="60"),
    ],
    ids=["deep", "html", "null", "no list", "no entries", "cut", "error", "busy"],
)
def test_a_list_that_is_none_does_not_harm_the_answer(answer):
    with misbehaving(good()) as server:
        server.list_answer = answer
        model = client(server)
        assert [model.complete(request(), Cancel(), Watch()).text for _ in range(2)] == ["Hello"] * 2
        assert model.context_window("m-1") is None
        model.close()


def test_a_window_that_is_known_is_not_asked_for():
    with misbehaving(good()) as server:
        server.models.append({"id": "m-1", "meta": {"n_ctx": 8192}})
        complete(server, context_window=4096)
    assert len(server.seen) == 1


def learned(server: Server, window: int, **fields: Any) -> OpenAIChat:
    """Return a client that another process has told of the window."""
    provider, capabilities = Provider("acme", server.url, **fields), Capabilities()
    capabilities.heed(Capability("acme", provider.address, "m-1", context_window=window))
    return OpenAIChat(provider, AT_ONCE, capabilities=capabilities)


def list_window(server: Server, window: int) -> None:
    server.models[:] = [{"id": "m-1", "max_model_len": window}]


def test_a_window_that_was_learned_is_asked_for_once_more():
    with misbehaving(good()) as server:
        model = learned(server, 4096)
        for window in (131_072, 8192):
            list_window(server, window)
            model.renew_window("m-1", Cancel())
            assert model.context_window("m-1") == 131_072
        model.close()
    assert [seen.path for seen in server.seen] == ["/v1/models"]


@pytest.mark.parametrize("fields", [{"context_window": 2048}, {}], ids=["configured", "unknown"])
def test_a_window_that_was_not_learned_is_not_asked_for_again(fields):
    with misbehaving(good()) as server:
        list_window(server, 8192)
        model = client(server, **fields)
        model.renew_window("m-1", Cancel())
        model.close()
    assert server.seen == []


@pytest.mark.parametrize(
    "answer", [plain("no", status=500), plain({"data": [{"id": "m-1"}]}), cut("half")], ids=["error", "silent", "cut"]
)
def test_a_list_without_a_window_leaves_the_one_that_was_learned(answer):
    with misbehaving(good()) as server:
        server.list_answer = answer
        model = learned(server, 4096)
        model.renew_window("m-1", Cancel())
        assert model.context_window("m-1") == 4096
        model.close()


def reading(tokens: int):
    return stream(*text("Hello"), {"choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens": 3}})


@pytest.mark.parametrize(
    ("tokens", "in_list", "window"),
    [(5000, None, 5000), (5000, 131_072, 131_072), (4000, 131_072, 4096), (10**12, None, 4096)],
    ids=["larger", "listed", "smaller", "impossible"],
)
def test_a_request_that_is_larger_than_the_window_disproves_it(tokens, in_list, window):
    with misbehaving(reading(tokens)) as server:
        if in_list:
            list_window(server, in_list)
        model = learned(server, 4096)
        for _ in range(3):
            model.complete(request(), Cancel(), Watch())
        assert model.context_window("m-1") == window
        model.close()
    assert len(server.seen) - len(server.chats) == (tokens == 5000)


def test_a_request_whose_size_is_only_estimated_disproves_nothing():
    with misbehaving(stream(*text("Hello"))) as server:
        list_window(server, 131_072)
        model = learned(server, 256)
        model.complete(request(words="word " * 1000), Cancel(), Watch())
        assert model.context_window("m-1") == 256
        model.close()


LLAMA = [{"id": "m-1", "owned_by": "llamacpp", "meta": {"n_ctx": 8192}}]


def ask_llama(server: Server) -> tuple[int | None, int | None]:
    server.models += LLAMA
    model = client(server)
    assert model.complete(request(), Cancel(), Watch()).text == "Hello"
    found = model.slots("m-1"), model.context_window("m-1")
    model.close()
    return found


def test_llama_says_how_many_slots_it_has():
    with misbehaving(good()) as server:
        server.documents["/props"] = plain({"total_slots": 2, "default_generation_settings": {"n_ctx": 4096}})
        assert ask_llama(server) == (2, 8192)
    assert [seen.path for seen in server.seen] == ["/v1/chat/completions", "/v1/models", "/props"]
    assert server.seen[-1].headers["authorization"] == "Bearer key-0123456789"


@pytest.mark.parametrize("total", [0, -1, True, 10**9, "many", None, [2], 1.5])
def test_a_number_of_slots_that_is_impossible_is_not_believed(total):
    with misbehaving(good()) as server:
        server.documents["/props"] = plain({"total_slots": total})
        assert ask_llama(server) == (None, 8192)


@pytest.mark.parametrize(
    "answer",
    [
        plain("<html><title>404</title></html>"),
        plain("[" * 100_000),
        plain("null"),
        plain('{"default_generation_settings": []}'),
        plain("no", status=500),
        plain({"error": "this server does not support props"}, status=501),
        cut("half"),
        stream(*["x" * 65_536] * 80),
    ],
    ids=["html", "deep", "null", "no settings", "error", "off", "cut", "endless"],
)
def test_props_that_are_none_do_no_harm(answer):
    with misbehaving(good()) as server:
        server.documents["/props"] = answer
        assert ask_llama(server) == (None, 8192)


@pytest.mark.slow
def test_props_that_hang_are_given_up_soon(monkeypatch):
    monkeypatch.setattr(openai_chat, "_WINDOW_TIMEOUT", 0.3)
    with misbehaving(good()) as server:
        server.documents["/props"] = hanging(head=False)
        assert ask_llama(server) == (None, 8192)


def test_other_servers_are_not_asked_for_slots():
    with misbehaving(good()) as server:
        server.models.append({"id": "m-1", "owned_by": "vllm", "max_model_len": 4096})
        complete(server)
    assert [seen.path for seen in server.seen] == ["/v1/chat/completions", "/v1/models"]


def test_a_window_of_2048_is_believed():
    with misbehaving(good()) as server:
        server.models.append({"id": "m-1", "meta": {"n_ctx": 2048}})
        model = client(server)
        model.complete(request(), Cancel(), Watch())
        assert model.context_window("m-1") == 2048
        model.close()


def test_what_is_configured_comes_before_what_was_found_out():
    known = Capability("acme", "", "m-1", False, True, "none", 2, 2048, True)
    forced = replace(request(), must_call=True)
    with misbehaving(good()) as server:
        shared = Capabilities()
        shared.heed(known._replace(address=Provider("acme", server.url).address))
        configured: list[dict[str, Any]] = [{}, {"stream": True, "slots": 8, "context_window": 9_000}]
        for fields in configured:
            provider = Provider("acme", server.url, **fields)
            model = OpenAIChat(provider, AT_ONCE, capabilities=shared)
            model.complete(forced if not fields else request(), Cancel(), Watch())
            assert (model.slots("m-1"), model.context_window("m-1")) == ((8, 9_000) if fields else (2, 2048))
            model.close()
    first, second = (seen.json for seen in server.chats)
    assert ("stream" in first, "stream" in second) == (False, True)
    assert first["tool_choice"] == second["tool_choice"] == "auto"


def test_what_is_news_is_told_once():
    told: list[Capability] = []
    provider, shared = Provider("acme", "http://user:secret@host/v1?key=secret"), Capabilities()
    shared.on_news = told.append
    shared.learn(provider, "m", slots=2, caches=None)
    shared.learn(provider, "m", slots=2)
    shared.learn(provider, "m", slots=4, streams=False)
    key = ("acme", "http://host/v1", "m")
    assert told == [Capability(*key, slots=2), Capability(*key, slots=4, streams=False)]
    shared.heed(Capability(*key, context_window=4096))
    assert shared.of(provider, "m") == Capability(*key, streams=False, slots=4, context_window=4096)


@pytest.mark.parametrize(
    "url",
    [
        "http://u:p@ssw0rd@host/v1",
        "http://u:p@ssw0rd@host/v1?a=b@c",
        "http://ssw0rd@host/v1",
        "http://host/v1?k=ssw0rd@x",
    ],
)
def test_an_address_is_without_user_and_password(url):
    provider = Provider("acme", url)
    assert provider.address == "http://host/v1"
    said = f"cannot connect to {url}, ask admin@host"
    assert "ssw0rd@host" not in provider.redact(said)
    assert provider.redact(said).endswith("ask admin@host")


def test_no_more_calls_at_once_than_are_configured():
    with misbehaving(hanging(delta(content="a")), good()) as server:
        model = client(server, concurrency=1)
        stop, stopped = Cancel(), []

        def first():
            with pytest.raises(CallCancelled):
                model.complete(request(), stop, Watch())
            stopped.append(True)

        thread = threading.Thread(target=first)
        thread.start()
        assert server.hanging.get(timeout=PATIENCE)
        impatient = Cancel()
        impatient.set(CancelReason.INTERRUPT)
        with pytest.raises(CallCancelled):
            model.complete(request(), impatient, Watch())
        assert len(server.chats) == 1
        stop.set(CancelReason.INTERRUPT)
        assert model.complete(request(), Cancel(), Watch()).text == "Hello"
        thread.join(PATIENCE)
        model.close()
    assert stopped == [True]


def test_slots_are_given_in_turn_and_never_lost():
    slots, most, now, lock, done = Slots("small", 2), 0, 0, threading.Lock(), []

    def use(cancel: Cancel):
        nonlocal most, now
        with slots.one(Visit(cancel, Watch())) as has_slot:
            if has_slot:
                with lock:
                    now += 1
                    most = max(most, now)
                with lock:
                    now -= 1
            done.append(has_slot)

    cancels = [Cancel() for _ in range(60)]
    threads = [threading.Thread(target=use, args=[cancel]) for cancel in cancels]
    for thread, cancel in zip(threads, cancels, strict=True):
        thread.start()
        if cancels.index(cancel) % 3 == 0:
            cancel.set(CancelReason.INTERRUPT)
    for thread in threads:
        thread.join(PATIENCE)
    assert len(done) == 60
    assert most <= 2
    with slots.one(Visit(Cancel(), Watch())) as one, slots.one(Visit(Cancel(), Watch())) as other:
        assert (one, other) == (True, True)
