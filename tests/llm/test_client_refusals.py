"""What servers refuse and how they fail: what is tried again, what is left out, and what people read."""

from __future__ import annotations

import json
import logging
import socket
import threading
from typing import Any

import pytest

from agentmesh.domain.cancel import Cancel
from agentmesh.llm.openai_chat import OpenAIChat
from agentmesh.llm.port import CallFailed, ChatRequest, Watch
from agentmesh.llm.provider import Provider
from agentmesh.llm.retry import RetryPolicy
from tests.llm.asking import AT_ONCE, Asking, Log, ask, client, request
from tests.llm.misbehaving import PATIENCE, Exchange, delta, error, good, misbehaving, plain, stream, text

KEY = "sk-secret-0123456789abcdef"


def failure(*answers, models=(), **fields) -> tuple[CallFailed, int]:
    """Return how a call fails and how many requests it took."""
    with misbehaving(*answers) as server:
        server.models = list(models)
        with pytest.raises(CallFailed) as caught:
            ask(server, **fields)
    return caught.value, len(server.chats)


def test_429_that_asks_for_too_long_a_wait_fails_at_once():
    caught, requests = failure(error(429, "Slow down.", {"retry-after": "86400"}))
    assert (caught.kind, caught.status, requests) == ("rate_limit", 429, 1)
    assert "86400 s" in caught.hint


@pytest.mark.parametrize(
    ("status", "kind", "made"),
    [
        (429, "rate_limit", 1),
        (500, "server", 3),
        (502, "server", 3),
        (503, "overload", 1),
        (529, "overload", 1),
    ],
)
def test_storm_ends_after_the_retries_and_load_without_them(status, kind, made):
    caught, requests = failure(error(status, "No."))
    assert (caught.kind, caught.status, requests) == (kind, status, made)
    assert all(word in caught.message for word in ("acme", "m-1", "No."))


@pytest.mark.parametrize(("status", "kind"), [(400, "bad_request"), (422, "bad_request"), (501, "server")])
def test_what_no_retry_helps_is_not_tried_again(status, kind):
    caught, requests = failure(error(status, "No."))
    assert (caught.kind, requests) == (kind, 1)


@pytest.mark.parametrize(("said", "requests"), [("true", 3), ("false", 1)])
def test_server_says_whether_to_retry(said, requests):
    status = 400 if said == "true" else 500
    assert failure(error(status, "No.", {"x-should-retry": said}))[1] == requests


@pytest.mark.parametrize(
    "answer",
    [error(429, "You exceeded your current quota.", code="insufficient_quota"), error(402, "Insufficient credits")],
    ids=["openai", "openrouter"],
)
def test_empty_account_is_not_asked_again(answer):
    caught, requests = failure(answer)
    assert (caught.kind, requests) == ("quota", 1)


THROTTLED = "Too many tokens, please wait before trying again."
TOO_LARGE = "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000."


@pytest.mark.parametrize(
    "answer",
    [
        error(429, THROTTLED),
        error(429, f"litellm.RateLimitError: BedrockException - {THROTTLED}", type="throttling_error", code="429"),
        error(429, "Please reduce the length of the messages."),
        error(400, f"ThrottlingException: {THROTTLED}"),
        error(500, THROTTLED),
        error(400, "Too many tokens.", {"retry-after": "7"}),
        stream({"error": {"message": THROTTLED}}),
    ],
    ids=["bedrock", "litellm", "429", "400", "500", "header", "event"],
)
def test_a_limit_of_tokens_per_minute_is_no_full_context(answer):
    caught, requests = failure(answer)
    assert (caught.kind, requests) == ("rate_limit", 1)


@pytest.mark.parametrize(
    "answer",
    [
        error(429, TOO_LARGE, code="rate_limit_exceeded"),
        error(413, f"{TOO_LARGE} Please reduce your message size and try again in 20s.", code="rate_limit_exceeded"),
        error(429, "prompt is too long: 210000 tokens > 200000 maximum"),
        error(400, "Your input exceeds the context window of this model. Please adjust your input and try again."),
        error(400, "Too many tokens in the prompt."),
    ],
    ids=["openai", "groq", "sizes", "try again", "400"],
)
def test_a_request_that_is_too_large_alone_is_a_full_context(answer):
    caught, requests = failure(answer)
    assert (caught.kind, requests) == ("context", 1)


def gemini(*quotas: str, delay: str = "", said: str = "") -> dict[str, Any]:
    """Return the body that Gemini sends with 429; the sentence is the same for every quota."""
    sentence = "You exceeded your current quota, please check your plan and billing details."
    details: list[dict[str, Any]] = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": each} for each in quotas]},
        *([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}] if delay else []),
    ]
    body = {"code": 429, "message": sentence + said, "status": "RESOURCE_EXHAUSTED", "details": details}
    return {"error": body}


MINUTE = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"
DAY = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
LIMITED = gemini(MINUTE, delay="700s")


@pytest.mark.parametrize(
    ("answer", "after"),
    [
        (plain([LIMITED], status=429), 700),
        (plain(gemini(said="\nPlease retry in 700.25s."), status=429), 700.25),
        (plain(gemini(delay="700500ms"), status=429), 700.5),
        (plain(gemini(MINUTE, delay="1s"), status=429, retry_after="900"), 900),
        (error(429, f"litellm.RateLimitError: geminiException - {json.dumps(LIMITED)}", code="429"), 700),
        (stream(LIMITED), 700),
        (error(429, "Rate limit reached. Please try again in 720s."), 720),
    ],
    ids=["list", "words", "ms", "header", "litellm", "event", "openai"],
)
def test_a_quota_of_a_minute_is_a_rate_limit_with_the_pause_that_the_server_names(answer, after):
    with misbehaving(answer) as server:
        model = client(server, RetryPolicy(retries=2, first=0.0, longest_pause=600.0))
        with pytest.raises(CallFailed) as caught:
            model.complete(request(), Cancel(), Watch())
        model.close()
    assert (caught.value.kind, len(server.chats)) == ("rate_limit", 1)
    assert f"asks to wait {after:.0f} s" in caught.value.hint


def test_after_a_quota_of_a_minute_the_call_goes_on():
    with misbehaving(plain([gemini(MINUTE, delay="0.1s")], status=429), good()) as server:
        model = client(server, RetryPolicy(retries=2, first=0.0))
        assert model.complete(request(), Cancel(), Watch()).text == "Hello"
        model.close()


@pytest.mark.parametrize("body", [gemini(DAY), gemini(MINUTE, DAY, delay="17s")], ids=["day", "both"])
def test_a_quota_of_a_day_is_not_waited_for(body):
    caught, requests = failure(plain([body], status=429))
    assert (caught.kind, requests) == ("quota", 1)
    assert caught.message.endswith("please check your plan and billing details.")


@pytest.mark.parametrize("status", [401, 400])
def test_wrong_key_names_the_variable_and_never_the_key(status):
    echo = error(status, f"Incorrect API key provided: {KEY}.", code="invalid_api_key")
    caught, requests = failure(echo, api_key=KEY, api_key_env="ACME_API_KEY")
    assert (caught.kind, requests) == ("auth", 1)
    assert "ACME_API_KEY" in caught.hint
    assert KEY not in caught.message + caught.hint


def test_missing_key_says_so():
    caught, _ = failure(error(401, "No."), api_key="", api_key_env="ACME_API_KEY")
    assert "none is set" in caught.message
    assert caught.hint == "Set ACME_API_KEY."


@pytest.mark.parametrize(
    "answer",
    [error(500, f"upstream said: Bearer {KEY} x-token {KEY[::-1]}"), plain(f"<p>{KEY}</p>"), stream({"error": KEY})],
    ids=["status", "page", "event"],
)
def test_secrets_are_cut_out_of_what_servers_say(answer, caplog):
    caplog.set_level(logging.INFO)
    caught, _ = failure(answer, api_key=KEY, headers={"X-Token": KEY[::-1]})
    assert "***" in caught.message
    assert caught.__cause__ is None
    for secret in (KEY, KEY[::-1]):
        assert secret not in caught.message + caught.hint + caplog.text


def test_unknown_model_lists_close_ones():
    answer = error(404, "The model `m-1` does not exist", code="model_not_found")
    caught, requests = failure(answer, models=["m-1-mini", "whisper", "m-12"])
    assert (caught.kind, requests) == ("unknown_model", 1)
    assert "'m-1'" in caught.message
    assert "m-12, m-1-mini" in caught.hint
    assert "whisper" not in caught.hint


def test_unknown_model_of_a_server_without_a_list():
    caught, _ = failure(error(404, 'model "m-1" not found, try pulling it first'))
    assert (caught.kind, caught.hint) == ("unknown_model", "Choose another model.")


def test_wrong_path_is_no_unknown_model():
    caught, _ = failure(plain({"detail": "Not Found"}, status=404))
    assert caught.kind == "bad_request"
    assert "base_url" in caught.hint


def test_context_overflow_names_its_size_to_the_engine():
    said = (
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens. Reduce 'max_tokens'."
    )
    with misbehaving(error(400, said, code="context_length_exceeded")) as server:
        model = client(server)
        with pytest.raises(CallFailed) as caught:
            model.complete(request(max_tokens=10), Cancel(), Watch())
        assert model.context_window("m-1") == 8192
        model.close()
    assert (caught.value.kind, len(server.chats)) == ("context", 1)
    assert (caught.value.window, caught.value.asked) == (8192, 9000)


def test_model_without_tools_is_refused_in_words():
    caught, requests = failure(error(400, "registry.example/m-1 does not support tools"))
    assert (caught.kind, requests) == ("bad_request", 1)
    assert "tools" in caught.message


def test_refused_parameter_is_left_out_once_and_for_all():
    answers = [error(400, "Unrecognized request argument supplied: stream_options"), good(), good()]
    log = Log()
    with misbehaving(*answers) as server:
        model = client(server)
        replies = [model.complete(request(), Cancel(), log.watch()) for _ in range(2)]
        model.close()
    assert ["stream_options" in seen.json for seen in server.chats] == [True, False, False]
    assert "stream_options" in replies[0].notes[0]
    assert replies[1].notes == ()
    assert log.retries == []


def test_parameter_refused_for_one_model_is_sent_to_another():
    with misbehaving(
        error(400, "Unsupported value: 'temperature' is not supported", param="temperature"), good()
    ) as server:
        model = client(server)
        for name in ("m-1", "m-2"):
            model.complete(request(name, temperature=0.2), Cancel(), Watch())
        model.close()
    assert ["temperature" in seen.json for seen in server.chats] == [True, False, True]


def test_two_refused_parameters_and_one_later_name():
    answers = [
        plain({"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}, status=422),
        error(400, "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
        good(),
    ]
    with misbehaving(*answers) as server:
        model = client(server)
        model.complete(request(seed=1, max_tokens=5), Cancel(), Watch())
        model.close()
    last = server.chats[-1].json
    assert (last["max_completion_tokens"], "max_tokens" in last, "seed" in last) == (5, False, False)


def test_server_that_refuses_to_stream_is_asked_for_the_whole_answer():
    whole = plain({"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]})
    with misbehaving(error(400, "Streaming is not supported by this model."), whole) as server:
        assert ask(server).text == "Hello"
    assert {"stream", "stream_options"}.isdisjoint(server.chats[-1].json)


def test_two_calls_that_are_refused_at_once_both_go_on():
    both = threading.Barrier(2, timeout=PATIENCE)
    refusal = error(400, "Unrecognized request argument supplied: stream_options")

    def together(exchange):
        both.wait()
        refusal(exchange)

    with misbehaving(together, together, good()) as server:
        model = client(server)
        askings = [Asking(model), Asking(model)]
        outcomes = [asking.end() for asking in askings]
        model.close()
    assert [getattr(outcome, "text", outcome) for outcome in outcomes] == ["Hello", "Hello"]


def test_parameter_that_stays_refused_fails():
    caught, requests = failure(error(400, "Unrecognized request argument supplied: stream_options"))
    assert (caught.kind, requests) == ("bad_request", 2)


@pytest.mark.parametrize(
    ("event", "kind", "requests"),
    [
        ({"error": {"message": "Provider disconnected", "code": 502}}, "server", 3),
        ({"error": {"message": "Slow down", "code": 429}}, "rate_limit", 1),
        ({"error": "the engine is overloaded"}, "overload", 1),
        ({"error": {"message": "no", "type": "invalid_request_error"}}, "bad_request", 1),
        (b'event: error\ndata: {"error": {"message": "context size exceeded"}}\n\n', "context", 1),
        (delta("error"), "server", 3),
    ],
    ids=["code", "rate", "words", "request", "context", "finish"],
)
def test_error_event_in_a_stream(event, kind, requests):
    caught, made = failure(stream(*text("Hel", finish=None), event))
    assert (caught.kind, made) == (kind, requests)
    assert caught.partial is not None
    assert caught.partial.text == "Hel"


def test_error_with_status_200_and_no_stream():
    assert failure(plain([{"error": {"code": 400, "message": "no"}}]))[0].kind == "bad_request"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/v1?token=hunter2-hunter2",
        "https://user:hunter2@127.0.0.1:{port}",
        "http://user:p@hunter2@127.0.0.1:{port}/v1",
    ],
)
def test_nobody_there_names_the_address_without_its_secrets(url):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    model = OpenAIChat(Provider("acme", url.format(port=port)), AT_ONCE)
    log = Log()
    with pytest.raises(CallFailed) as caught:
        model.complete(request(), Cancel(), log.watch())
    model.close()
    assert caught.value.kind == "connection"
    assert f"127.0.0.1:{port}" in caught.value.message
    assert "hunter2" not in caught.value.message + caught.value.hint
    assert len(log.retries) == 2


@pytest.mark.parametrize("charset", ["utf-8", "latin-1", "nonsense", "base64", "idna"])
def test_a_refusal_in_any_encoding_is_told(charset: str):
    def answer(exchange: Exchange) -> None:
        exchange.send_response(400)
        exchange.send_header("content-type", f"text/plain; charset={charset}")
        exchange.send_header("content-length", "3")
        exchange.end_headers()
        exchange.wfile.write(b"no!")

    caught, _ = failure(answer)
    assert (caught.kind, caught.message[-3:]) == ("bad_request", "no!")


def test_of_a_refusal_without_end_only_the_beginning_is_read():
    def endless(exchange: Exchange) -> None:
        exchange.send_response(400)
        exchange.send_header("transfer-encoding", "chunked")
        exchange.end_headers()
        while not exchange.mesh.released.wait(0.01):
            exchange.piece(b"no " * 20_000)

    caught, requests = failure(endless, first_token_timeout=5.0)
    assert (caught.kind, caught.status, requests) == ("bad_request", 400, 1)
    assert "no no no" in caught.message


def test_number_that_json_does_not_have_is_refused_before_the_call():
    with misbehaving(good()) as server, pytest.raises(CallFailed) as caught:
        client(server).complete(request(temperature=float("nan")), Cancel(), Watch())
    assert caught.value.kind == "bad_request"
    assert server.seen == []


CALLED = {"id": "a", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
TURN: list[dict[str, object]] = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "", "tool_calls": [CALLED]},
    {"role": "tool", "tool_call_id": "a", "content": ""},
]


@pytest.mark.parametrize(
    "said",
    [
        "ValidationException: messages: text content blocks must be non-empty",
        "The text field in the ContentBlock object at messages.1.content.0 is blank.",
        "messages[1].content must not be empty",
    ],
)
def test_a_server_that_refuses_empty_text_beside_calls_gets_null_once_and_for_all(said):
    with misbehaving(error(400, said), good(), good()) as server:
        model = client(server)
        for _ in range(2):
            model.complete(ChatRequest("m-1", TURN), Cancel(), Watch())
        model.close()
    assert [seen.json["messages"][1]["content"] for seen in server.chats] == ["", None, None]
    assert [seen.json["messages"][2]["content"] for seen in server.chats] == ["", "", ""]


def test_a_server_that_refuses_null_too_is_asked_no_further():
    with misbehaving(error(400, "messages: content must be non-empty")) as server:
        model = client(server)
        with pytest.raises(CallFailed):
            model.complete(ChatRequest("m-1", TURN), Cancel(), Watch())
        model.close()
    assert len(server.chats) == 2


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_followed_nowhere(status: int):
    with misbehaving(good("stolen")) as other:
        to = other.url.replace("127.0.0.1", "localhost") + "/stolen"
        caught, requests = failure(error(status, "", {"location": to}), api_key=KEY, headers={"X-Api-Key": KEY})
        assert other.seen == []
    assert (caught.kind, requests) == ("bad_request", 1)
    assert f"redirects to {to}, which is not followed" in caught.message
    assert "base_url" in caught.hint
