"""A model server that is away for a while is waited for, by all calls together, and everybody reads why."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from threading import Thread

import pytest

from agentmesh.domain.cancel import Cancel, CancelReason
from agentmesh.domain.rows import Pause
from agentmesh.llm.openai_chat import OpenAIChat
from agentmesh.llm.pauses import Pauses
from agentmesh.llm.port import CallCancelled, CallFailed, Reply, Watch
from agentmesh.llm.provider import Provider
from agentmesh.llm.retry import RetryPolicy
from tests.llm.asking import Asking, Log, eventually, request
from tests.llm.misbehaving import PATIENCE, Answer, Exchange, Server, data, delta, good, misbehaving

PATIENT = RetryPolicy(retries=1, first=0.01, longest_pause=7200)


@contextmanager
def serving(port: int, *answers: Answer) -> Iterator[Server]:
    """Run a server on a port that was free a moment ago."""
    mesh = Server(answers)

    class Http(ThreadingHTTPServer):
        allow_reuse_address = True
        daemon_threads = True
        block_on_close = False

    with Http(("127.0.0.1", port), type("Bound", (Exchange,), {"mesh": mesh})) as http:
        thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield mesh
        finally:
            mesh.released.set()
            http.shutdown()
            thread.join(PATIENCE)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def client(port: int, policy: RetryPolicy = PATIENT, pauses: Pauses | None = None) -> OpenAIChat:
    return OpenAIChat(Provider("acme", f"http://127.0.0.1:{port}/v1"), policy, pauses)


def test_a_server_that_comes_back_answers_all_who_waited_and_no_retry_is_used_up():
    port, log = free_port(), Log()
    model = client(port)
    askings = [Asking(model, log.watch()) for _ in range(8)]
    eventually(lambda: len(log.pauses) > 16)  # each was told twice: more than the one retry
    assert all(asking.outcome is None for asking in askings)
    with serving(port, good()):
        assert all(isinstance(asking.end(), Reply) for asking in askings)
    model.close()
    assert log.retries == []
    assert all(f"acme (model m-1) at http://127.0.0.1:{port}/v1 cannot be reached" in why for _, why in log.pauses)


def dying(*events: object) -> Answer:
    """Send these events, then take the whole server away."""

    def answer(exchange: Exchange) -> None:
        exchange.begin()
        for event in events:
            exchange.piece(data(event))
        exchange.server.shutdown()
        exchange.server.server_close()
        exchange.close_connection = True

    return answer


HALF = delta(content="half of")


def test_what_came_before_the_server_went_away_is_kept_when_it_stays_away():
    policy = RetryPolicy(retries=1, first=0.01, longest=0.01, longest_pause=0.3)
    port, log = free_port(), Log()
    with serving(port, dying(HALF)):
        model = client(port, policy)
        with pytest.raises(CallFailed) as caught:
            model.complete(request(), Cancel(), log.watch())
        model.close()
    assert caught.value.kind == "connection"
    assert caught.value.partial is not None
    assert caught.value.partial.text == "half of"
    assert "0.3 s" in caught.value.message
    assert "base_url" in caught.value.hint
    assert (len(log.retries), len(log.pauses) > 2) == (1, True)


def test_what_came_before_the_server_went_away_is_kept_when_a_person_stops_the_wait():
    port = free_port()
    cancel = Cancel()
    with serving(port, dying(HALF)):
        model = client(port)
        watch = Watch(paused=lambda _seconds, _why, _left: cancel.set(CancelReason.INTERRUPT))
        with pytest.raises(CallCancelled) as caught:
            model.complete(request(), cancel, watch)
        model.close()
    assert caught.value.partial.text == "half of"


def test_a_server_killed_in_mid_stream_answers_when_it_is_back():
    port, log = free_port(), Log()
    model = client(port)
    with serving(port, dying(HALF)):
        asking = Asking(model, log.watch())
        eventually(lambda: len(log.pauses) > 2)
    with serving(port, good()):
        outcome = asking.end()
    model.close()
    assert isinstance(outcome, Reply)
    assert outcome.text == "Hello"


def test_a_server_that_accepts_and_hangs_up_again_and_again_is_not_waited_for():
    def hang_up(exchange: Exchange) -> None:
        exchange.close_connection = True

    with misbehaving(hang_up) as server, pytest.raises(CallFailed) as caught:
        OpenAIChat(Provider("acme", server.url), PATIENT).complete(request(), Cancel(), Watch())
    assert (caught.value.kind, len(server.chats)) == ("connection", 2)


def test_people_read_at_once_how_long_it_will_be_tried():
    told: list[tuple[float, float]] = []
    cancel = Cancel()

    def paused(seconds: float, _why: str, left: float) -> None:
        told.append((seconds, left))
        if len(told) > 2:
            cancel.set(CancelReason.INTERRUPT)

    model = client(free_port(), RetryPolicy(retries=1, first=0.05, longest_pause=600))
    with pytest.raises(CallCancelled):
        model.complete(request(), cancel, Watch(paused=paused))
    model.close()
    left = [each for _, each in told]
    assert 599 < left[-1] < left[0] <= 600


def test_pauses_of_a_server_that_is_away_stay_short_and_in_this_process():
    shared: list[Pause] = []
    told: list[float] = []
    cancel = Cancel()
    pauses = Pauses(RetryPolicy(retries=1, first=7200, longest=7200, longest_pause=7200, jitter=lambda: 1.0))
    pauses.on_pause = shared.append

    def paused(seconds: float, _why: str, _left: float) -> None:
        told.append(seconds)
        cancel.set(CancelReason.INTERRUPT)

    model = client(free_port(), PATIENT, pauses)
    with pytest.raises(CallCancelled):
        model.complete(request(), cancel, Watch(paused=paused))
    model.close()
    assert 0 < told[0] <= 5
    assert shared == []


@pytest.mark.parametrize(
    "policy", [RetryPolicy(retries=0, longest_pause=7200), RetryPolicy(retries=1, first=0.01, longest_pause=0)]
)
def test_who_wants_no_retries_or_no_pauses_is_told_at_once(policy):
    log, model = Log(), client(free_port(), policy)
    with pytest.raises(CallFailed) as caught:
        model.complete(request(), Cancel(), log.watch())
    model.close()
    assert caught.value.kind == "connection"
    assert log.pauses == []
    assert len(log.retries) == policy.retries


def first_pause(base_url: str) -> str:
    """Return why a call to this server first pauses; the call is cancelled then."""
    reasons, cancel = [], Cancel()
    model = OpenAIChat(Provider("acme", base_url), PATIENT)

    def paused(_seconds: float, why: str, _left: float) -> None:
        reasons.append(why)
        cancel.set(CancelReason.INTERRUPT)

    with pytest.raises(CallCancelled):
        model.complete(request(), cancel, Watch(paused=paused))
    model.close()
    return reasons[0]


def test_a_name_that_nobody_knows_is_told_at_once_and_tried_on():
    why = first_pause("http://no-such-host.invalid/v1")
    assert "http://no-such-host.invalid/v1 cannot be reached" in why


def test_a_server_that_speaks_no_tls_is_not_waited_for():
    with misbehaving(good()) as server:
        model = OpenAIChat(Provider("acme", server.url.replace("http://", "https://")), PATIENT)
        with pytest.raises(CallFailed, match="cannot be reached") as caught:
            model.complete(request(), Cancel(), Watch())
        model.close()
    assert "http:// instead of https://" in caught.value.hint


def test_a_proxy_that_speaks_no_tls_is_no_reason_to_ask_for_plain_http(monkeypatch):
    with misbehaving(good()) as server:
        monkeypatch.setenv("https_proxy", server.url.replace("http://", "https://").removesuffix("/v1"))
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        model = OpenAIChat(Provider("acme", "https://models.example/v1"), PATIENT)
        with pytest.raises(CallFailed, match=r"through the proxy 127\.0\.0\.1:") as caught:
            model.complete(request(), Cancel(), Watch())
        model.close()
    assert "Check the proxy's URL" in caught.value.hint


def test_a_proxy_that_cannot_be_reached_is_named_without_its_password(monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://me:s3cret@127.0.0.1:{free_port()}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    why = first_pause("http://models.example/v1")
    assert "cannot be reached through the proxy 127.0.0.1:" in why
    assert "s3cret" not in why
