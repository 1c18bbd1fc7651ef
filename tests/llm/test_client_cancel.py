"""A cancellation ends a call in whatever state it is; without it each of these calls would hang too long."""

from __future__ import annotations

import socket
import threading

import pytest

from agentmesh.domain.cancel import Cancel, CancelReason
from agentmesh.llm.openai_chat import OpenAIChat
from agentmesh.llm.port import CallCancelled, Watch
from agentmesh.llm.provider import Provider
from agentmesh.llm.retry import RetryPolicy
from tests.llm.asking import AT_ONCE, Asking, client, eventually, request
from tests.llm.misbehaving import PATIENCE, deaf_port, delta, error, good, hanging, misbehaving, text


def cancelled(asking: Asking) -> CallCancelled:
    asking.cancel.set(CancelReason.INTERRUPT)
    outcome = asking.end()
    assert isinstance(outcome, CallCancelled)
    return outcome


@pytest.fixture
def elsewhere():
    """Make a client of any address, closed after the test."""
    made: list[OpenAIChat] = []

    def make(url: str) -> OpenAIChat:
        made.append(OpenAIChat(Provider("acme", url, connect_timeout=2 * PATIENCE), AT_ONCE))
        return made[-1]

    yield make
    for model in made:
        model.close()


def test_cancelled_before_the_call_sends_nothing():
    cancel = Cancel()
    cancel.set(CancelReason.KILL)
    with misbehaving(good()) as server, pytest.raises(CallCancelled):
        client(server).complete(request(), cancel, Watch())
    assert server.seen == []


def test_cancelled_while_connecting(elsewhere):
    with deaf_port() as port:
        asking = Asking(elsewhere(f"http://127.0.0.1:{port}/v1"))
        eventually(lambda: any(thread.name.endswith(f":{port}") for thread in threading.enumerate()))
        assert cancelled(asking).partial.text == ""


def test_connection_that_comes_after_the_cancellation_is_closed(elsewhere, monkeypatch):
    asked, resolved = threading.Event(), threading.Event()
    real = socket.getaddrinfo

    def slow_names(host, *args, **kwargs):
        if host != "slow.example":  # an abandoned connection of another test
            return real(host, *args, **kwargs)
        asked.set()
        resolved.wait(PATIENCE)
        return real("127.0.0.1", *args, **kwargs)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setattr(socket, "getaddrinfo", slow_names)
        asking = Asking(elsewhere(f"http://slow.example:{listener.getsockname()[1]}/v1"))
        assert asked.wait(PATIENCE)
        cancelled(asking)
        resolved.set()
        listener.settimeout(PATIENCE)
        late, _ = listener.accept()
        late.settimeout(PATIENCE)
        assert late.recv(1) == b""
        late.close()


def test_cancelled_in_the_tls_handshake(elsewhere):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        asking = Asking(elsewhere(f"https://127.0.0.1:{listener.getsockname()[1]}/v1"))
        listener.settimeout(PATIENCE)
        peer, _ = listener.accept()
        with peer:
            peer.settimeout(PATIENCE)
            assert peer.recv(1) == b"\x16", "the first byte of a handshake"
            cancelled(asking)


def test_cancelled_while_the_server_hangs_before_its_headers():
    with misbehaving(hanging(head=False)) as server:
        model = client(server)
        asking = Asking(model)
        server.hanging.get(timeout=PATIENCE)
        assert cancelled(asking).partial.text == ""
        model.close()


def test_cancelled_on_a_connection_that_is_used_again():
    with misbehaving(good(), hanging(head=False), good()) as server:
        model = client(server)
        model.complete(request(), Cancel(), Watch())
        asking = Asking(model)
        server.hanging.get(timeout=PATIENCE)
        cancelled(asking)
        assert model.complete(request(), Cancel(), Watch()).text == "Hello"
        model.close()
    clients = [seen.client for seen in server.chats]
    assert clients[0] == clients[1] != clients[2]


def test_cancelled_behind_a_proxy_of_the_environment(elsewhere, monkeypatch):
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with misbehaving(hanging(head=False)) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        asking = Asking(elsewhere("http://model.example/v1"))
        proxy.hanging.get(timeout=PATIENCE)
        cancelled(asking)
    assert proxy.chats[0].path == "http://model.example/v1/chat/completions"


def test_cancelled_in_mid_stream_keeps_what_was_streamed():
    call = {"index": 0, "id": "a", "function": {"name": "bash", "arguments": '{"comm'}}
    with misbehaving(hanging(*text("Hel", finish=None), delta(tool_calls=[call]))) as server:
        model = client(server)
        begun = threading.Event()
        asking = Asking(model, Watch(tool=lambda _name: begun.set()))
        assert begun.wait(PATIENCE)
        partial = cancelled(asking).partial
        model.close()
    assert (partial.text, partial.tool_calls[0].name, partial.finish_reason) == ("Hel", "bash", "cut")
    assert partial.usage.estimated
    assert partial.usage.output_tokens > 0


def test_cancelled_from_within_the_watch():
    cancel = Cancel()
    with misbehaving(hanging(*text("Hel", finish=None))) as server:
        model = client(server)
        with pytest.raises(CallCancelled) as caught:
            model.complete(request(), cancel, Watch(text=lambda _text: cancel.set(CancelReason.KILL)))
        model.close()
    assert caught.value.partial.text == "Hel"


def test_cancelled_in_a_retry_pause():
    with misbehaving(error(500, "Broken.", {"retry-after": "3600"})) as server:
        model = client(server, RetryPolicy(patience=7200))
        paused = threading.Event()
        asking = Asking(model, Watch(retry=lambda _seconds, _why: paused.set()))
        assert paused.wait(PATIENCE)
        cancelled(asking)
        model.close()
    assert len(server.chats) == 1


def test_one_cancellation_leaves_the_neighbours_alone():
    with misbehaving(hanging(*text("a", finish=None)), hanging(*text("b", finish=None))) as server:
        model = client(server)
        askings = [Asking(model), Asking(model)]
        for _ in askings:
            server.hanging.get(timeout=PATIENCE)
        cancelled(askings[0])
        assert askings[1].outcome is None
        cancelled(askings[1])
        model.close()
