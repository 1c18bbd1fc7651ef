"""Connections: lent to one call at a time, closed when nobody wants them, and used again while they are open."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import httpx2
import openai
import pytest

from agentmesh.domain.cancel import Cancel, CancelReason
from agentmesh.llm import connections, exchange
from agentmesh.llm.connections import Connections, ModelConnection
from agentmesh.llm.failure import AttemptFailed
from tests.fixtures.threads import NoThreads
from tests.llm.asking import Asking, Log, client, eventually, request
from tests.llm.misbehaving import PATIENCE, Exchange, good, hanging, misbehaving


class Cuttable:
    def __init__(self) -> None:
        self.was_cut = threading.Event()

    def cut(self) -> None:
        self.was_cut.set()


class Made(ModelConnection):
    """A connection whose HTTP client a test can look at."""

    def __init__(self) -> None:
        transport = httpx2.MockTransport(lambda _request: httpx2.Response(200))
        self.http = httpx2.Client(transport=transport)
        super().__init__(lambda _hooks: openai.OpenAI(api_key="key", http_client=self.http), "test")


def is_closed(connection: ModelConnection) -> bool:
    assert isinstance(connection, Made)
    return connection.http.is_closed


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(connections, "time", SimpleNamespace(monotonic=lambda: now.seconds))
    return now


def test_the_last_one_used_is_lent_first_and_none_to_two_at_once(clock):
    lent = Connections(Made, keep=30.0)
    first, second = lent.take(), lent.take()
    assert first is not second
    lent.give_back(first)
    lent.give_back(second)
    assert lent.take() is second
    assert lent.take() is first
    assert lent.take() not in (first, second)


def test_a_connection_unused_for_long_is_closed(clock):
    lent = Connections(Made, keep=30.0)
    old, busy = lent.take(), lent.take()
    lent.give_back(old)
    clock.seconds += 31
    assert not is_closed(old)
    lent.give_back(busy)
    assert is_closed(old)
    assert not is_closed(busy)
    assert lent.take() is busy


def test_a_connection_unused_for_long_is_not_lent(clock):
    lent = Connections(Made, keep=30.0)
    old = lent.take()
    lent.give_back(old)
    clock.seconds += 31
    assert lent.take() is not old


def test_a_connection_that_was_cut_is_closed_and_not_lent_again(clock):
    lent = Connections(Made, keep=30.0)
    cut = lent.take()
    cut.cut()
    lent.give_back(cut)
    assert is_closed(cut)
    assert lent.take() is not cut


def test_closing_leaves_a_connection_in_use_to_its_user(clock):
    lent = Connections(Made, keep=30.0)
    idle, busy = lent.take(), lent.take()
    lent.give_back(idle)
    lent.close()
    assert is_closed(idle)
    assert not is_closed(busy)
    lent.give_back(busy)
    assert is_closed(busy)


def test_calls_one_after_another_share_a_connection_and_two_at_once_do_not():
    with misbehaving(good(), hanging(head=False), good()) as server:
        model = client(server)
        model.complete(request(), Cancel(), Log().watch())
        other = Asking(model)
        server.hanging.get(timeout=PATIENCE)
        model.complete(request(), Cancel(), Log().watch())
        other.cancel.set(CancelReason.INTERRUPT)
        other.end()
        model.close()
    first, second, third = (seen.client for seen in server.chats)
    assert first == second != third


def test_a_server_that_hangs_up_between_two_calls_is_called_again():
    def once(exchange: Exchange) -> None:
        good()(exchange)
        exchange.close_connection = True

    with misbehaving(once, hanging(head=False)) as server:
        model = client(server)
        model.complete(request(), Cancel(), Log().watch())
        asking = Asking(model)
        server.hanging.get(timeout=PATIENCE)
        asking.cancel.set(CancelReason.INTERRUPT)
        asking.end()
        model.close()
    first, second = (seen.client for seen in server.chats)
    assert first != second


def test_the_server_sees_the_end_of_an_answer_that_nobody_reads_on():
    hung_up: list[bool] = []

    def endless(exchange: Exchange) -> None:
        exchange.send_response(400)
        exchange.send_header("transfer-encoding", "chunked")
        exchange.end_headers()
        try:
            while not exchange.mesh.released.is_set():
                exchange.piece(b"no " * 20_000)
        except OSError:
            hung_up.append(True)
            raise

    with misbehaving(endless) as server:
        model = client(server)
        asking = Asking(model)
        asking.end()
        eventually(lambda: bool(hung_up))
        model.close()


def test_time_limits_hold_although_the_system_gave_no_thread_at_first(monkeypatch):
    monkeypatch.setattr(exchange, "_DEADLINES", exchange._Deadlines())
    NoThreads(monkeypatch, "deadlines", 1)
    with pytest.raises(AttemptFailed, match="no thread left") as refused, exchange.Exchange(Cancel(), 0.01):
        pass
    assert refused.value.retry
    with exchange.Exchange(Cancel(), 0.01) as limited, limited.using(connection := Cuttable()):
        assert connection.was_cut.wait(PATIENCE)


def test_a_call_whose_connection_got_no_thread_is_tried_again(monkeypatch):
    system = NoThreads(monkeypatch, "connect", 1)
    with misbehaving(good()) as server:
        model = client(server)
        assert model.complete(request(), Cancel(), Log().watch()).finish_reason == "stop"
        model.close()
    assert system.left == 0
