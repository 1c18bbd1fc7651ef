from __future__ import annotations

import pytest

from agentmesh.domain.errors import DatabaseError
from agentmesh.store.subscriptions import Batch, Subscriptions


def commit_all(subscriptions):
    while batch := subscriptions.next_batch(100):
        subscriptions.committed(batch)


def batch(listen=(), unlisten=()):
    return Batch(frozenset(listen), frozenset(unlisten))


def test_a_wish_is_settled_by_the_commit_of_its_batch_not_before():
    subscriptions = Subscriptions()
    ticket = subscriptions.want(["a", "b"])
    first = subscriptions.next_batch(100)
    assert first == batch(listen=["a", "b"])
    assert not ticket.settled.is_set()
    subscriptions.committed(first)
    assert ticket.settled.is_set()


def test_a_wish_that_spans_batches_is_settled_by_the_last():
    subscriptions = Subscriptions()
    ticket = subscriptions.want(["a", "b"])
    subscriptions.committed(subscriptions.next_batch(1))
    assert not ticket.settled.is_set()
    subscriptions.committed(subscriptions.next_batch(1))
    assert ticket.settled.is_set()


def test_what_is_active_needs_no_command():
    subscriptions = Subscriptions()
    subscriptions.want(["a"])
    commit_all(subscriptions)
    assert subscriptions.want(["a"]).settled.is_set()
    assert not subscriptions.next_batch(100)


def test_a_second_wish_waits_for_the_commit_of_the_first():
    subscriptions = Subscriptions()
    subscriptions.want(["a"])
    under_way = subscriptions.next_batch(100)
    second = subscriptions.want(["a"])
    assert not second.settled.is_set()
    subscriptions.committed(under_way)
    assert second.settled.is_set()


def test_a_channel_is_dropped_when_the_last_wish_is_taken_back():
    subscriptions = Subscriptions()
    subscriptions.want(["a"])
    subscriptions.want(["a"])
    commit_all(subscriptions)
    assert not subscriptions.unwant(["a"])
    assert not subscriptions.next_batch(100)
    assert subscriptions.unwant(["a"])
    assert subscriptions.next_batch(100) == batch(unlisten=["a"])


def test_a_wish_during_the_unlisten_of_its_channel_listens_again():
    subscriptions = Subscriptions()
    subscriptions.want(["a"])
    commit_all(subscriptions)
    subscriptions.unwant(["a"])
    under_way = subscriptions.next_batch(100)
    ticket = subscriptions.want(["a"])
    assert not ticket.settled.is_set()
    subscriptions.committed(under_way)
    assert not ticket.settled.is_set()
    assert subscriptions.next_batch(100) == batch(listen=["a"])


def test_a_wish_taken_back_before_its_batch_costs_nothing():
    subscriptions = Subscriptions()
    subscriptions.want(["a"])
    subscriptions.unwant(["a"])
    assert not subscriptions.next_batch(100)


def test_after_a_loss_everything_wanted_is_listened_to_again_and_tickets_wait():
    subscriptions = Subscriptions()
    subscriptions.want(["a", "b"])
    commit_all(subscriptions)
    subscriptions.unwant(["b"])
    under_way = subscriptions.want(["c"])
    subscriptions.next_batch(100)
    subscriptions.disconnected()
    assert not under_way.settled.is_set()
    assert subscriptions.next_batch(100) == batch(listen=["a", "c"])


def test_an_abandoned_wish_is_neither_listened_to_nor_remembered():
    subscriptions = Subscriptions()
    ticket = subscriptions.want(["a"])
    subscriptions.abandon(ticket)
    subscriptions.unwant(["a"])
    assert not subscriptions.next_batch(100)
    commit_all(subscriptions)
    assert not ticket.settled.is_set()


def test_closing_refuses_those_who_wait_and_those_who_come():
    subscriptions = Subscriptions()
    ticket = subscriptions.want(["a"])
    subscriptions.close()
    assert ticket.settled.is_set()
    assert ticket.refused
    with pytest.raises(DatabaseError, match="stopped"):
        subscriptions.want(["b"])
