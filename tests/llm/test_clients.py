"""Clients with a connection each: lent to one call at a time, and closed when nobody wants them any more."""

from __future__ import annotations

from types import SimpleNamespace

import httpx2
import pytest

from agentmesh.domain.cancel import Cancel, CancelReason
from agentmesh.llm import clients
from agentmesh.llm.clients import Clients
from tests.llm.asking import Asking, Log, client, request
from tests.llm.misbehaving import PATIENCE, good, hanging, misbehaving


def made() -> httpx2.Client:
    return httpx2.Client(transport=httpx2.MockTransport(lambda _request: httpx2.Response(200)))


def is_closed(client: httpx2.Client) -> bool:
    return client.is_closed


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(clients, "time", SimpleNamespace(monotonic=lambda: now.seconds))
    return now


def test_the_last_one_used_is_lent_first_and_none_to_two_at_once(clock):
    lent = Clients(made, keep=30.0)
    first, second = lent.take(), lent.take()
    assert first is not second
    lent.give_back(first)
    lent.give_back(second)
    assert lent.take() is second
    assert lent.take() is first
    assert lent.take() not in (first, second)


def test_who_was_not_wanted_for_long_is_closed(clock):
    lent = Clients(made, keep=30.0)
    old, busy = lent.take(), lent.take()
    lent.give_back(old)
    clock.seconds += 31
    assert not is_closed(old)
    lent.give_back(busy)
    assert is_closed(old)
    assert not is_closed(busy)
    assert lent.take() is busy


def test_closing_leaves_who_is_in_use_to_its_user(clock):
    lent = Clients(made, keep=30.0)
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
