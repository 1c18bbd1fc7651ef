"""When a failed call is tried again."""

from __future__ import annotations

import pytest

from agentmesh.llm.failure import AttemptFailed
from agentmesh.llm.retry import RetryPolicy, retry_after

NOW = 1_700_000_000.0


def failed(kind: str = "server", *, retry: bool = True, after: float | None = None) -> AttemptFailed:
    return AttemptFailed(kind, "no", retry=retry, after=after)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:30 GMT"}, 10.0),
        ({"retry-after": "Tue, 14 Nov 2000 22:13:30 GMT"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Tue, 99 Nov 99999 99:99:99 GMT"}, None),
    ],
    ids=["none", "seconds", "fraction", "negative", "ms first", "bad ms", "date", "past", "nan", "words", "odd date"],
)
def test_retry_after(headers, seconds):
    assert retry_after(headers, lambda: NOW) == seconds


@pytest.mark.parametrize("ahead", [-700.0, 0.0, 700.0])
def test_a_date_is_compared_with_the_servers_own_clock(ahead):
    headers = {"retry-after": "Tue, 14 Nov 2023 22:13:30 GMT", "date": "Tue, 14 Nov 2023 22:13:25 GMT"}
    assert retry_after(headers, lambda: NOW + ahead) == 5.0
    assert retry_after({**headers, "date": "now"}, lambda: NOW) == 10.0


def test_a_wait_without_sense_is_told_in_few_digits():
    assert len(failed(after=1e300).final().hint) < 60


def test_pauses_double_up_to_the_longest_and_end():
    policy = RetryPolicy(retries=4, first=1, longest=3, jitter=lambda: 1.0)
    assert [policy.pause(failed(), n, 0) for n in range(1, 6)] == [1, 2, 3, 3, None]


def test_jitter_is_full():
    assert RetryPolicy(first=8, jitter=lambda: 0.25).pause(failed(), 1, 0) == 2


def test_server_is_never_asked_before_it_wants_to_be():
    assert RetryPolicy(first=1, jitter=lambda: 0.5).pause(failed(after=7), 1, 0) == 7.5


def test_patience_bounds_all_pauses_together():
    policy = RetryPolicy(first=100, longest=100, patience=20, jitter=lambda: 1.0)
    assert policy.pause(failed(), 1, 0) == 20
    assert policy.pause(failed(after=10), 1, 15) is None
    assert policy.pause(failed(after=float("inf")), 1, 0) is None


def test_what_cannot_be_helped_is_not_tried_again():
    assert RetryPolicy().pause(failed(retry=False), 1, 0) is None


@pytest.mark.parametrize(("kind", "retries"), [("timeout", 1), ("empty", 2), ("garbage", 2), ("cut", 3), ("server", 6)])
def test_dear_failures_are_tried_less_often(kind, retries):
    policy = RetryPolicy()
    assert [policy.pause(failed(kind), n, 0) is not None for n in (retries, retries + 1)] == [True, False]


@pytest.mark.parametrize("said", ["inf", "1e400", "nan", "-inf"])
def test_no_wait_is_endless(said):
    assert retry_after({"retry-after": said}) is None
