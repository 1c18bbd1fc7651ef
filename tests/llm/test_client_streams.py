"""Answers of every shape that servers give, good ones and broken ones, over real sockets."""

from __future__ import annotations

import threading

import pytest

from agentmesh.domain.cancel import Cancel, CancelReason
from agentmesh.llm import reading
from agentmesh.llm.pauses import Pass
from agentmesh.llm.port import CallCancelled, CallFailed, Usage, Watch
from agentmesh.llm.retry import RetryPolicy
from tests.llm.asking import Asking, Log, ask, client, request
from tests.llm.misbehaving import (
    PATIENCE,
    USAGE,
    cut,
    data,
    delta,
    dripping,
    error,
    good,
    hanging,
    misbehaving,
    plain,
    stream,
    text,
)


def failure(*answers, **fields) -> tuple[CallFailed, int]:
    """Return how a call fails and how many requests it took."""
    with misbehaving(*answers) as server, pytest.raises(CallFailed) as caught:
        ask(server, **fields)
    return caught.value, len(server.chats)


def test_good_stream_is_watched_and_assembled():
    log = Log()
    with misbehaving(good("Hel", "lo")) as server:
        reply = ask(server, log)
    assert (reply.text, reply.finish_reason, reply.model, reply.notes) == ("Hello", "stop", "m-1", ())
    assert reply.usage == Usage(input_tokens=10, output_tokens=3)
    assert log.text == ["Hel", "lo"]
    assert log.retries == []


def test_request_carries_key_stream_and_tools():
    with misbehaving(good()) as server:
        ask(server, headers={"X-Title": "mesh"})
    seen = server.chats[0]
    assert seen.headers["authorization"] == "Bearer key-0123456789"
    assert seen.headers["x-title"] == "mesh"
    assert seen.json["stream"] is True
    assert seen.json["stream_options"] == {"include_usage": True}
    assert seen.json["tools"][0]["function"]["name"] == "bash"


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"api_key": ""},
        {"headers": {"authorization": "Basic eDp5", "X-Title": "mesh"}},
        {"api_key": "", "headers": {"Authorization": "Basic eDp5"}},
    ],
)
def test_a_chat_has_the_headers_that_the_sdk_itself_sends_but_its_telemetry(fields):
    with misbehaving(good()) as server:
        server.models.append("m-1")
        model = client(server, **fields)
        model.models()
        model.complete(request(), Cancel(), Log().watch())
        model.close()
    of_body = {"content-type", "content-length"}
    listing, chat, *_ = (
        {name: value for name, value in seen.headers.items() if name not in of_body} for seen in server.seen
    )
    assert chat == {name: value for name, value in listing.items() if not name.startswith("x-stainless-")}
    assert server.chats[0].headers["content-type"] == "application/json"


def test_a_query_of_the_base_url_stays_behind_the_path():
    with misbehaving(good()) as server:
        server.url += "?version=3"
        assert ask(server).text == "Hello"
    assert [seen.path.partition("/v1")[2] for seen in server.seen] == [
        "/chat/completions?version=3",
        "/models?version=3",
    ]


def test_server_without_key_gets_no_key_of_the_environment(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another-server")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin-of-another")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-another")
    with misbehaving(good()) as server:
        assert ask(server, api_key="").text == "Hello"
    assert "of-another" not in str(server.chats[0].headers)
    assert "authorization" not in server.chats[0].headers


def test_connection_is_used_again_after_done():
    with misbehaving(good()) as server:
        model = client(server)
        for _ in range(3):
            model.complete(request(), Cancel(), Log().watch())
        model.close()
    assert len({seen.client for seen in server.chats}) == 1


def test_server_that_stays_silent_after_done_does_not_hold_the_answer():
    with misbehaving(hanging(*text("Hello"), "[DONE]")) as server:
        assert ask(server).text == "Hello"


def test_plain_json_from_a_server_that_does_not_stream():
    calls = [{"id": "a", "type": "function", "function": {"name": "bash", "arguments": "{}"}}]
    answer = {
        "model": "m-1",
        "choices": [{"message": {"content": "Hello", "tool_calls": calls}, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 3},
    }
    log = Log()
    with misbehaving(plain(answer)) as server:
        reply = ask(server, log)
    assert (reply.text, reply.tool_calls[0].name, reply.finish_reason) == ("Hello", "bash", "tool_calls")
    assert log.text == ["Hello"]
    assert reply.usage.input_tokens == 10


def test_missing_usage_is_estimated_and_said():
    with misbehaving(stream(*text("12345678"))) as server:
        reply = ask(server)
    assert reply.usage.estimated
    assert reply.usage.output_tokens == 2
    assert reply.usage.input_tokens == len(server.chats[0].body) // 4
    assert "estimated" in reply.notes[0]


@pytest.mark.parametrize(("given", "kept"), [({"prompt_tokens": 77}, "input"), ({"completion_tokens": 77}, "output")])
def test_a_half_of_the_usage_that_is_missing_is_estimated(given, kept):
    with misbehaving(stream(*text("12345678"), {"choices": [], "usage": given})) as server:
        used = ask(server).usage
    assert used.estimated
    expected = {"input": len(server.chats[0].body) // 4, "output": 2} | {kept: 77}
    assert (used.input_tokens, used.output_tokens) == (expected["input"], expected["output"])


def test_stream_without_done_and_usage_ends_with_its_finish_reason():
    with misbehaving(stream(*text("Hello"), done=False)) as server:
        assert ask(server).text == "Hello"


def test_connection_broken_after_the_finish_reason_loses_nothing():
    with misbehaving(cut(*text("Hello"))) as server:
        assert ask(server).text == "Hello"
    assert len(server.chats) == 1


@pytest.mark.parametrize(
    "late", [{"error": {"message": "no usage", "code": 500}}, delta("error")], ids=["event", "finish"]
)
def test_an_error_after_the_finish_reason_loses_nothing(late):
    with misbehaving(stream(*text("Hel", "lo"), late)) as server:
        reply = ask(server)
    assert (reply.text, reply.finish_reason, len(server.chats)) == ("Hello", "stop", 1)
    assert "The server reported an error after the end of its answer, which is kept." in reply.notes


def test_an_error_after_an_answer_without_a_word_is_an_error():
    caught, requests = failure(stream(delta("stop"), {"error": {"message": "down", "code": 500}}))
    assert (caught.kind, requests) == ("server", 3)


@pytest.mark.parametrize("index", ["0", 1])
@pytest.mark.parametrize("is_stream", [True, False])
def test_an_answer_whose_only_choice_has_another_number_is_one(index, is_stream):
    chunks = [
        {"choices": [{**each["choices"][0], "index": index}]} for each in [delta(role="assistant"), *text("Hel", "lo")]
    ]
    whole = {"choices": [{"index": index, "message": {"content": "Hello"}, "finish_reason": "stop"}]}
    with misbehaving(stream(*chunks) if is_stream else plain(whole)) as server:
        reply = ask(server)
    assert (reply.text, reply.finish_reason, len(server.chats)) == ("Hello", "stop", 1)


def test_stream_without_finish_reason_is_noted():
    with misbehaving(stream(*text("Hello", finish=None))) as server:
        assert "no reason" in ask(server).notes[0]


@pytest.mark.parametrize(
    "empty",
    [stream(), stream(delta(role="assistant")), stream(delta("stop"))],
    ids=["done alone", "role alone", "finish alone"],
)
def test_empty_stream_is_retried_then_answered(empty):
    log = Log()
    with misbehaving(empty, good()) as server:
        assert ask(server, log).text == "Hello"
    assert len(log.retries) == 1


def test_stream_that_stays_empty_fails():
    error, requests = failure(stream())
    assert (error.kind, error.partial, requests) == ("empty", None, 3)
    assert "acme" in error.message


THOUGHT = delta(reasoning_content="hm")
WORDLESS = {
    "nothing": stream(delta("stop"), USAGE),
    "no usage": stream(delta("stop")),
    "blanks": stream(*text(" ", "\n")),
    "thoughts alone": stream(THOUGHT, delta("stop"), USAGE),
    "no calls": stream(delta("tool_calls")),
}


@pytest.mark.parametrize("silence", WORDLESS)
def test_answer_without_a_word_is_asked_for_once_more_and_then_taken(silence):
    log = Log()
    with misbehaving(WORDLESS[silence]) as server:
        reply = ask(server, log)
    assert (reply.text.strip(), reply.tool_calls, len(server.chats)) == ("", (), 2)
    assert "The model answered without a word." in reply.notes
    assert "without a word" in log.retries[0][1]


def test_answer_that_spent_its_tokens_on_thoughts_is_not_asked_for_again():
    with misbehaving(stream(THOUGHT, delta("length"), USAGE)) as server:
        reply = ask(server)
    assert (reply.finish_reason, len(server.chats)) == ("length", 1)


def test_cut_stream_is_retried_and_what_was_streamed_is_void():
    log = Log()
    with misbehaving(cut(*text("Hel", finish=None)), good("Hello")) as server:
        assert ask(server, log).text == "Hello"
    assert log.text == ["Hel", "Hello"]
    assert "m-1" in log.retries[0][1]


@pytest.mark.parametrize(
    "answer",
    [cut(*text("Hel", finish=None)), stream(*text("Hel", finish=None), done=False)],
    ids=["broken", "ended"],
)
def test_stream_that_is_always_cut_fails_with_what_there_was(answer):
    error, requests = failure(answer)
    assert (error.kind, requests) == ("cut", 3)
    assert error.partial is not None
    assert (error.partial.text, error.partial.finish_reason) == ("Hel", "cut")
    assert error.partial.usage.estimated


BILLED = {"choices": [], "usage": {"prompt_tokens": 1000, "completion_tokens": 500, "cost": 0.1}}
LOST = {
    "cut": cut(*text("Hel", finish=None), BILLED),
    "error in the stream": stream(*text("Hel", finish=None), BILLED, {"error": {"code": 500, "message": "died"}}),
    "usage alone": cut(BILLED),
    "wordless": stream(delta("stop"), BILLED),
}


@pytest.mark.parametrize("lost", LOST)
def test_an_answer_says_what_its_lost_attempts_used(lost):
    with misbehaving(LOST[lost], LOST[lost], good("Hello")) as server:
        reply = ask(server)
    lost_attempts = len(server.chats) - 1
    assert reply.earlier.usage == Usage(1000 * lost_attempts, 500 * lost_attempts)
    assert reply.earlier.cost_usd == pytest.approx(0.1 * lost_attempts)
    last = (0, 0.1) if lost == "wordless" else (10, None)
    assert (reply.usage.input_tokens % 1000, reply.cost_usd) == last


def test_a_failure_says_what_all_attempts_used():
    error, requests = failure(LOST["cut"])
    assert requests == 3
    assert error.partial is not None
    assert error.partial.bill.usage == Usage(3000, 1500)
    assert error.partial.bill.cost_usd == pytest.approx(0.3)
    assert error.partial.usage == Usage(1000, 500)


def test_a_refusal_after_a_lost_attempt_forgets_nothing():
    failed, requests = failure(LOST["cut"], error(400, "no"))
    assert requests == 2
    assert failed.partial is not None
    assert failed.partial.bill.usage == Usage(1000, 500)


@pytest.mark.parametrize("code", [500, 529])
def test_without_room_in_the_budget_nothing_is_tried_again(code):
    asked = []

    def may_retry(last, every):
        asked.append((last.tokens, every.tokens))
        return len(asked) < 2

    lost = stream(*text("Hel", finish=None), BILLED, {"error": {"code": code, "message": "died"}})
    policy = RetryPolicy(retries=5, first=0.0, longest=0.0)
    with misbehaving(lost) as server:
        model = client(server, policy)
        with pytest.raises(CallFailed, match="died") as caught:
            model.complete(request(), Cancel(), Watch(may_retry=may_retry))
        model.close()
    assert asked == [(1500, 1500), (1500, 3000)]
    assert len(server.chats) == 2
    assert "budget has no room for another attempt" in caught.value.hint
    assert caught.value.partial is not None
    assert caught.value.partial.bill.tokens == 3000


def test_an_answer_without_a_word_is_taken_if_the_budget_has_no_room_for_another():
    with misbehaving(LOST["wordless"]) as server:
        model = client(server)
        reply = model.complete(request(), Cancel(), Watch(may_retry=lambda _last, _every: False))
        model.close()
    assert (len(server.chats), reply.bill.tokens) == (1, 1500)


def test_garbage_in_a_data_line_is_retried_then_fails():
    error, requests = failure(stream(*text("Hel", finish=None), '{"choices": [{"del'))
    assert (error.kind, requests) == ("garbage", 3)
    assert '"del' in error.message


def test_web_page_is_no_answer_and_not_asked_for_again():
    error, requests = failure(plain("<html>Please log in</html>", content_type="text/html"))
    assert (error.kind, requests) == ("garbage", 1)
    assert "Please log in" in error.message
    assert "/v1" in error.hint


def test_garbage_in_tool_arguments_is_kept_for_the_engine():
    call = {"index": 0, "id": "a", "function": {"name": "bash", "arguments": '{"command": "ls'}}
    with misbehaving(stream(delta(tool_calls=[call]), delta("tool_calls"), USAGE)) as server:
        reply = ask(server)
    assert reply.tool_calls[0].arguments == '{"command": "ls'


def test_line_separators_inside_json_split_nothing():
    words = "a\u2028b\u2029c\x85d"
    with misbehaving(good(words)) as server:
        assert ask(server).text == words


def test_comments_and_crlf_are_understood():
    events = [b": OPENROUTER PROCESSING\r\n\r\n", b'data: {"choices":[{"delta":{"content":"Hello"}}]}\r', b"\n\r\n"]
    with misbehaving(stream(*events, delta("stop"), USAGE)) as server:
        assert ask(server).text == "Hello"


def test_events_without_blank_lines_between_are_understood():
    raw = b"".join(data(event).removesuffix(b"\n") for event in (*text("Hel", "lo"), "[DONE]"))
    with misbehaving(stream(raw, done=False)) as server:
        assert ask(server).text == "Hello"


def test_hanging_in_mid_stream_is_a_timeout_with_what_there_was():
    error, requests = failure(hanging(*text("Hel", finish=None)), idle_timeout=0.05)
    assert (error.kind, requests) == ("timeout", 2)
    assert "model_calls.idle_timeout" in error.hint
    assert "first_token_timeout" not in error.hint
    assert error.partial is not None
    assert error.partial.text == "Hel"


@pytest.mark.parametrize(
    "answer",
    [hanging(head=False), hanging(), hanging(b": ping\n\n"), hanging(delta(role="assistant"))],
    ids=["no head", "head", "comment", "role"],
)
def test_hanging_before_the_first_word_is_a_timeout(answer):
    error, requests = failure(answer, first_token_timeout=0.1)
    assert (error.kind, requests) == ("timeout", 2)
    assert error.partial is None or (error.partial.text, error.partial.bill.usage.output_tokens) == ("", 0)
    assert error.message.endswith("accepted the request and did not answer in time.")
    assert "model_calls.first_token_timeout" in error.hint
    assert "idle_timeout" not in error.hint


def test_pause_before_the_first_word_is_no_idling():
    answer = b"".join(data(event) for event in (*text("Hello"), "[DONE]"))
    with misbehaving(dripping(delta(role="assistant", content=""), answer, every=0.2)) as server:
        assert ask(server, idle_timeout=0.05).text == "Hello"


def test_comments_do_not_keep_a_dead_answer_alive():
    error, _ = failure(dripping(*[b": ping\n\n"] * 1000, every=0.02), first_token_timeout=0.2)
    assert error.kind == "timeout"


def test_slow_drip_is_no_timeout():
    with misbehaving(dripping(*text(*"Hello, slow world"), "[DONE]", every=0.05)) as server:
        assert ask(server, first_token_timeout=10, idle_timeout=0.7).text == "Hello, slow world"


@pytest.mark.parametrize(
    "idle",
    [
        delta(),
        delta(role="assistant", content="", reasoning="", tool_calls=[]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": ""}}]),
        USAGE,
    ],
    ids=["empty", "blank", "arguments", "usage"],
)
def test_events_that_add_nothing_do_not_keep_an_answer_alive(idle):
    call = {"index": 0, "id": "a", "function": {"name": "bash", "arguments": "{"}}
    begun = delta(content="Hel", tool_calls=[call])
    error, _ = failure(dripping(begun, *[idle] * 500, every=0.02), idle_timeout=0.3)
    assert error.kind == "timeout"
    assert error.partial is not None
    assert error.partial.text == "Hel"


@pytest.mark.parametrize(
    "events",
    [
        [delta(reasoning="hm ")] * 24,
        [delta(tool_calls=[{"index": 0, "function": {"name": "bash", "arguments": "x"}}])] * 24,
        [{"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": n}} for n in range(24)],
    ],
    ids=["reasoning", "arguments", "usage"],
)
def test_events_that_add_anything_keep_an_answer_alive(events):
    answer = dripping(delta(content="Hel"), *events, *text("lo"), every=0.05)
    with misbehaving(answer) as server:
        assert ask(server, first_token_timeout=10, idle_timeout=0.7).text == "Hello"
    assert len(server.chats) == 1


def test_events_after_the_finish_reason_do_not_hold_the_answer(monkeypatch):
    monkeypatch.setattr(reading, "_AFTER_FINISH", 0.2)
    with misbehaving(dripping(*text("Hello"), *[delta()] * 100, USAGE, every=0.02)) as server:
        reply = ask(server)
    assert (reply.text, reply.usage.estimated) == ("Hello", True)


def test_unpaired_surrogates_and_nul_reach_no_server():
    with misbehaving(good()) as server:
        model = client(server)
        model.complete(request(words="a\x00b\ud83dc"), Cancel(), Log().watch())
        model.close()
    assert server.chats[0].json["messages"][0]["content"] == "a\ufffdb\ufffdc"


def test_made_up_ids_are_unique_in_the_conversation_and_the_same_again():
    call = {"function": {"name": "bash", "arguments": "{}"}}
    twice = [{"index": n, "id": "call_0", **call} for n in (0, 1)]
    history = [{"role": "assistant", "tool_calls": [{"id": "call_0", "type": "function", **call}]}]
    asked = request()
    asked = type(asked)(asked.model, [*asked.messages, *history], asked.tools)
    with misbehaving(stream(delta(tool_calls=twice), delta("tool_calls"), USAGE)) as server:
        model = client(server)
        replies = [model.complete(asked, Cancel(), Log().watch()) for _ in range(2)]
        fresh = model.complete(request(), Cancel(), Log().watch())
        model.close()
    ids = [call.id for call in replies[0].tool_calls]
    assert len({*ids, "call_0"}) == 3
    assert replies[0].tool_calls == replies[1].tool_calls
    assert "2 tool calls" in replies[0].notes[0]
    assert fresh.tool_calls[0].id == "call_0"
    assert fresh.tool_calls[1].id not in ids


def test_what_came_before_garbage_in_one_piece_was_told():
    def together(exchange):
        exchange.begin()
        exchange.piece(b"".join(map(data, [*text("Hel", "lo", finish=None), b"{"])))
        exchange.end()

    log = Log()
    with misbehaving(together, good()) as server:
        assert ask(server, log).text == "Hello"
    assert log.text == ["Hello", "Hello"]
    assert len(log.retries) == 1


VLLM = {"object": "error", "message": "This model's maximum context length is 4096 tokens", "code": 400}


@pytest.mark.parametrize("form", ["whole", "stream"])
@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (VLLM, "context", "4096"),
        ({"detail": "Model is loading, wait"}, "server", "Model is loading"),
        ({"detail": [{"loc": ["body", "model"], "msg": "field required"}]}, "server", "field required"),
        ({"error": {"message": "slow down", "code": "429"}}, "rate_limit", "slow down"),
    ],
)
def test_an_error_with_status_200_is_told_in_the_servers_words(form, body, kind, said):
    caught, _ = failure(plain(body) if form == "whole" else stream(body))
    assert (caught.kind, said in caught.message) == (kind, True)


def test_words_beside_an_answer_are_no_error():
    with misbehaving(stream({"message": "loading the model"}, *text("Hello"), {"detail": "done"})) as server:
        assert ask(server).text == "Hello"


def used(*answers, **fields) -> Usage | None:
    """Return what a call that fails has used; None if nothing."""
    partial = failure(*answers, **fields)[0].partial
    return None if partial is None else partial.bill.usage


def test_an_input_that_the_server_counted_is_not_estimated_though_the_answer_after_it_is():
    begun = {**delta(content="x" * 400), "usage": {"prompt_tokens": 4000, "completion_tokens": 1}}
    with misbehaving(*[cut(begun)] * 4) as server, pytest.raises(CallFailed) as caught:
        ask(server)
    assert caught.value.partial
    unpriced = caught.value.partial.bill.unpriced
    assert {(each.input_tokens, each.output_tokens) for each in unpriced} == {(4000, 100)}
    assert {(each.estimated, each.input_estimated) for each in unpriced} == {(True, False)}


def test_a_request_that_was_accepted_and_cut_off_before_its_first_token_is_estimated():
    words = request(words="x" * 40_000)
    for answer in (hanging(), cut(), hanging(b": processing\n\n")):
        read = used(answer, answer, error(400, "no"), asked=words, first_token_timeout=0.3)
        assert read is not None
        assert 20_000 < read.input_tokens < 22_000, "both attempts"
        assert (read.output_tokens, read.estimated) == (0, True)


def test_what_ends_without_an_answer_by_itself_is_free():
    no_head, busy = hanging(head=False), stream({"error": {"message": "overloaded", "code": 529}})
    for answer in (no_head, busy, stream(), plain("<html>"), plain(""), plain({"detail": "no such path"})):
        assert used(answer, first_token_timeout=0.3) is None


def test_what_had_arrived_stays_if_later_attempts_bring_nothing():
    partial = failure(cut(*text("Hello wor", finish=None)), *[cut()] * 3)[0].partial
    assert partial is not None
    assert partial.text == "Hello wor"
    assert len(partial.bill.unpriced) > 1


def test_a_request_that_was_accepted_and_cancelled_before_its_first_token_is_estimated(monkeypatch):
    accepted = threading.Event()
    monkeypatch.setattr(Pass, "taken", lambda _pass: accepted.set())
    with misbehaving(hanging()) as server:
        asking = Asking(client(server))
        assert accepted.wait(PATIENCE)
        asking.cancel.set(CancelReason.INTERRUPT)
        outcome = asking.end()
    assert isinstance(outcome, CallCancelled)
    assert outcome.partial.bill.usage.input_tokens > 0
    assert outcome.partial.bill.usage.estimated


def test_a_second_answer_costs_what_the_first_request_did_too():
    with misbehaving(hanging(), good()) as server:
        reply = ask(server, first_token_timeout=0.3)
    assert reply.bill.usage.input_tokens == len(server.chats[0].body) // 4 + 10
