"""Errors of a provider behind OpenRouter: what people read of them, and what is done."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentmesh.domain.cancel import Cancel
from agentmesh.llm.openai_chat import OpenAIChat
from agentmesh.llm.port import CallFailed, Watch
from agentmesh.llm.provider import Provider
from agentmesh.llm.simulator.reply import Fault, FaultKind, ScriptedReply
from agentmesh.llm.simulator.server import Simulator
from tests.llm.asking import AT_ONCE, ask, request
from tests.llm.misbehaving import Answer, good, misbehaving, plain, stream

TOO_LONG = (
    "This model's maximum context length is 262144 tokens. However, your messages resulted in 262897 tokens. "
    "Please reduce the length of the messages."
)
LIMITED = "z-ai/glm is temporarily rate-limited upstream. Please retry shortly, or add your own key."


def passed_on(raw: Any, status: int = 400, **metadata: Any) -> dict[str, Any]:
    """Return OpenRouter's error body for an error of a provider."""
    known = {"raw": raw, "provider_name": "Nvidia", "is_byok": False, **metadata}
    return {"error": {"message": "Provider returned error", "code": status, "metadata": known}, "user_id": "user_1"}


def upstream(message: str, **fields: Any) -> str:
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", **fields}}, indent=2)


def failure(*answers: Answer) -> CallFailed:
    with misbehaving(*answers) as server, pytest.raises(CallFailed) as caught:
        ask(server)
    return caught.value


def refused(raw: Any, status: int = 400, **metadata: Any) -> CallFailed:
    return failure(plain(passed_on(raw, status, **metadata), status))


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (upstream("It supports at most 64 tools."), "Nvidia: It supports at most 64 tools."),
        (json.loads(upstream("It supports at most 64 tools.")), "Nvidia: It supports at most 64 tools."),
        ('{"detail": "Sixty-four tools."}', "Nvidia: Sixty-four tools."),
        ('[{"error": {"code": 400, "message": "User location is not supported."}}]', "Nvidia: User location is not"),
        ("No such tool.\n", "Nvidia: No such tool."),
        ('{"oops": 1}', 'Nvidia: {"oops": 1}'),
        ("", "Provider returned error"),
        (None, "Provider returned error"),
        ("[" * 5000, "Nvidia: [[["),
    ],
    ids=["json", "object", "detail", "gemini", "sentence", "unknown", "empty", "none", "deep"],
)
def test_what_the_provider_said_is_shown(raw, said):
    caught = refused(raw)
    assert caught.kind == "bad_request"
    assert said in caught.message


def test_it_is_shown_without_secrets_and_not_in_full():
    caught = refused(upstream("Bad key-0123456789 and sk-or-abcdefghijklmnop. " + "x" * 5000))
    assert "Bad *** and ***." in caught.message
    assert len(caught.message) < 600


@pytest.mark.parametrize(
    ("raw", "status", "kind"),
    [
        (upstream(TOO_LONG), 400, "context"),
        (upstream(TOO_LONG), 502, "context"),
        (LIMITED, 429, "rate_limit"),
        (LIMITED, 502, "rate_limit"),
        (upstream("Slow down.", code=429), 400, "rate_limit"),
        (upstream("No.", code="insufficient_quota"), 429, "quota"),
        (upstream("Your credit balance is too low"), 400, "quota"),
        (upstream("Country not supported"), 403, "auth"),
        (upstream("The server is overloaded."), 502, "overload"),
    ],
)
def test_what_the_provider_said_decides(raw, status, kind):
    assert refused(raw, status).kind == kind
    assert failure(stream(passed_on(raw, status))).kind == kind


def test_counts_in_a_refusal_for_length_are_read():
    inner = upstream("Too long.", type="exceed_context_size_error", n_prompt_tokens=9412, n_ctx=8192)
    for raw, window, asked in ((upstream(TOO_LONG), 262144, 262897), (inner, 8192, 9412)):
        caught = refused(raw)
        assert (caught.window, caught.asked) == (window, asked)


def test_the_wait_that_openrouter_names_is_kept():
    for raw, status in ((LIMITED, 429), (upstream("The server is overloaded."), 503)):
        caught = refused(raw, status, retry_after_seconds=29)
        assert caught.hint.startswith("The server asks to wait 29 s.")


def test_a_parameter_that_the_provider_refuses_is_left_out():
    body = passed_on(upstream("Unsupported parameter: 'seed'", param="seed"))
    with misbehaving(plain(body, 400), good()) as server:
        ask(server, asked=request(seed=1))
    assert ["seed" in seen.json for seen in server.chats] == [True, False]


def test_a_key_that_the_provider_refuses_is_not_taken_for_ours():
    caught = refused(upstream("invalid API key sk-abcdefghijklmnop"), 401)
    assert (caught.kind, caught.message) == (
        "auth",
        "acme (model m-1) was refused by Nvidia, which does not accept its API key.",
    )
    assert "check it at acme" in caught.hint


def test_the_simulator_sends_such_errors():
    fault = ScriptedReply(fault=Fault(FaultKind.STATUS, status=400, message=TOO_LONG))
    with Simulator(lambda _view: fault, profile="openrouter") as server:
        model = OpenAIChat(Provider("openrouter", server.base_url), AT_ONCE)
        with pytest.raises(CallFailed) as caught:
            model.complete(request(), Cancel(), Watch())
        model.close()
    assert (caught.value.kind, caught.value.window) == ("context", 262144)
    assert f"Simulator: {TOO_LONG}" in caught.value.message
