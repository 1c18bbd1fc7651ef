"""Providers, the names of models, prices, and what an import costs."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from agentmesh.domain.cancel import Cancel
from agentmesh.domain.errors import ConfigError
from agentmesh.llm import prices
from agentmesh.llm.openai_chat import OpenAIChat
from agentmesh.llm.port import CallFailed, Usage, Watch
from agentmesh.llm.provider import Provider
from agentmesh.llm.router import Router
from agentmesh.llm.usage import read_usage
from tests.llm.asking import AT_ONCE, ask, client, request
from tests.llm.misbehaving import good, misbehaving, plain, stream, text

OPENAI = Provider("openai")
LOCAL = Provider("local", "http://127.0.0.1:8000/v1")


@pytest.mark.parametrize(
    ("providers", "name", "client", "model"),
    [
        ("ab", "a/m", "a", "m"),
        ("ab", "b/x/y", "b", "x/y"),
        ("b", "x/y", "b", "x/y"),
        ("b", "m", "b", "m"),
        ("b", "b/", "b", "b/"),
        ("b", "/b", "b", "/b"),
    ],
)
def test_first_segment_counts_only_if_it_names_a_provider(providers, name, client, model):
    router = Router({one: Provider(one) for one in providers})
    found, rest = router.resolve(name)
    assert (found.provider.name, rest) == (client, model)


def test_only_provider_is_the_default():
    assert Router({"a": Provider("a")}).resolve("m")[1] == "m"


def test_name_without_provider_lists_those_configured():
    with pytest.raises(CallFailed) as caught:
        Router({"a": Provider("a"), "b": Provider("b")}).resolve("c/m")
    assert caught.value.kind == "unknown_model"
    assert "a, b" in caught.value.hint


def test_router_sends_the_providers_own_name_of_the_model():
    with misbehaving(good("one")) as one, misbehaving(good("two")) as two:
        router = Router({"one": Provider("one", one.url), "two": Provider("two", two.url)}, AT_ONCE)
        words = [router.complete(request(name), Cancel(), Watch()).text for name in ("one/m", "two/acme/m")]
        router.close()
    assert words == ["one", "two"]
    assert two.chats[0].json["model"] == "acme/m"


def test_models_are_listed():
    with misbehaving(good()) as server:
        server.models = ["m-1", "m-2"]
        model = client(server)
        assert model.models() == ("m-1", "m-2")
        model.close()


@pytest.mark.parametrize(
    "fields",
    [
        {"base_url": "api.acme.example/v1"},
        {"base_url": ""},
        {"base_url": "http://[::1/v1"},
        {"base_url": "http://acme:port/v1"},
        {"base_url": "http://ac me/v1"},
        {"api_key": "a\nb"},
        {"api_key": "ä"},
        {"headers": {"X": "a\r\nb"}},
    ],
    ids=repr,
)
def test_what_can_never_work_is_refused(fields):
    with pytest.raises(ConfigError, match="acme"):
        Provider(**{"name": "acme", **fields})


@pytest.mark.parametrize("proxy", ["gopher://127.0.0.1:1", "socks5://127.0.0.1:1"])
def test_proxy_that_cannot_be_used_is_no_traceback(proxy, monkeypatch):
    monkeypatch.setenv("all_proxy", proxy)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with pytest.raises(CallFailed, match="acme"):
        OpenAIChat(Provider("acme", "http://model.example/v1"), AT_ONCE).complete(request(), Cancel(), Watch())


def test_blanks_round_a_key_do_not_count():
    assert Provider("acme", api_key=" key-1\n").api_key == "key-1"


def test_provider_shows_no_secret():
    provider = Provider(
        "acme", "https://user:pw-1234@acme.example/v1?key=query-1234", "key-1234", headers={"X": "header-1234"}
    )
    shown = provider.redact(f"key-1234 header-1234 query-1234 {provider.base_url} sk-{'a' * 20} http://u:p@proxy")
    assert "1234" not in repr(provider.address) + shown
    assert "u:p" not in shown
    assert "a" * 20 not in shown
    assert "-1234" not in repr(provider).replace(provider.base_url, "")


def test_cached_tokens_are_priced_as_such():
    full = prices.cost_usd(OPENAI, ("gpt-5",), Usage(1_000_000, 0))
    cached = prices.cost_usd(OPENAI, ("gpt-5",), Usage(1_000_000, 0, 1_000_000))
    assert full is not None
    assert cached is not None
    assert 0 < cached < full


@pytest.mark.parametrize(
    "reported",
    [
        {"prompt_tokens_details": {"cache_creation_tokens": 99_000}},
        {"prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 99_000}},
        {"cache_creation_input_tokens": 99_000},
    ],
)
def test_tokens_written_into_a_cache_are_priced_as_such(reported: dict[str, Any]):
    gateway = Provider("gateway", "https://gateway.example/v1", priced_as="anthropic")
    chunk = {"usage": {"prompt_tokens": 100_000, "completion_tokens": 100, **reported}}
    used = read_usage(chunk)
    assert used is not None
    assert used.written_tokens == 99_000
    written = prices.cost_usd(gateway, ("claude-sonnet-4-5",), used)
    plain_input = prices.cost_usd(gateway, ("claude-sonnet-4-5",), Usage(100_000, 100))
    assert written is not None
    assert plain_input is not None
    assert written > 1.2 * plain_input


def test_more_cached_than_input_is_no_crash():
    assert prices.cost_usd(OPENAI, ("gpt-5",), Usage(10, 0, 99)) == prices.cost_usd(
        OPENAI, ("gpt-5",), Usage(10, 0, 10)
    )


def test_reported_name_helps_where_the_asked_one_is_unknown():
    assert prices.cost_usd(OPENAI, ("my-alias", "gpt-5"), Usage(10, 10)) is not None


def test_local_model_of_a_famous_name_has_no_price_and_no_known_context():
    assert prices.cost_usd(LOCAL, ("gpt-5",), Usage(10, 10)) is None
    assert prices.context_window(LOCAL, "gpt-5") is None


def test_gateway_can_be_priced_as_another():
    gateway = Provider("gateway", "https://gateway.example/v1", priced_as="openai")
    assert prices.cost_usd(gateway, ("gpt-5",), Usage(10, 10)) == prices.cost_usd(OPENAI, ("gpt-5",), Usage(10, 10))


def test_context_window_is_the_configured_one_or_the_known_one():
    known = OpenAIChat(OPENAI).context_window("gpt-5")
    assert known is not None
    assert known > 100_000
    assert OpenAIChat(Provider("openai", context_window=5)).context_window("gpt-5") == 5
    assert Router({"local": LOCAL}).context_window("local/gpt-5") is None


def test_cost_that_the_server_reports_wins():
    usage = {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 3, "cost": 0.25}}
    with misbehaving(stream(*text("a"), usage)) as server:
        assert ask(server, priced_as="openai").cost_usd == 0.25


def test_cost_of_an_unknown_model_is_unknown():
    with misbehaving(good()) as server:
        assert ask(server).cost_usd is None


def test_answer_of_another_form_lists_no_models():
    with misbehaving(plain("x")) as server:
        model = client(server)
        with pytest.raises(CallFailed):
            model.models()
        model.close()


def imported(code: str) -> str:
    """Run code in a fresh interpreter; return which of the heavy libraries it has then."""
    code += (
        "\nimport sys"
        "\nprint(*(m for m in ('openai', 'httpx2', 'httpcore2', 'genai_prices', 'pydantic') if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_import_does_not_load_openai_nor_prices():
    assert imported("import agentmesh.llm.router") == ""


def test_models_that_are_warm_have_loaded_what_a_call_needs():
    code = (
        "from agentmesh.llm.models import Models\n"
        "from agentmesh.llm.provider import Provider\n"
        "Models({'acme': Provider('acme', 'http://model.example/v1')}).warm()"
    )
    assert imported(code) == "openai httpx2 httpcore2 genai_prices pydantic"


def test_without_a_provider_nothing_is_warmed():
    assert imported("from agentmesh.llm.models import Models\nModels({}).warm()") == ""


def test_a_warm_model_answers_as_a_cold_one():
    with misbehaving(good("hello")) as server:
        model = client(server)
        model.warm()
        assert model.complete(request(), Cancel(), Watch()).text == "hello"
        model.close()


def test_who_cannot_get_ready_says_so_at_the_call(monkeypatch):
    monkeypatch.setenv("all_proxy", "gopher://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    model = OpenAIChat(Provider("acme", "http://model.example/v1"), AT_ONCE)
    model.warm()
    with pytest.raises(CallFailed, match="acme"):
        model.complete(request(), Cancel(), Watch())
