"""When several workers are warm enough to be measured, and what their rounds come to."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.workers import Done, all_take_part, steady


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ([1.0], False),
        ([1.0, 1.0], False),
        ([1.0, 1.0, 1.0], True),
        ([1.0, 0.5, 0.4], False),
        ([1.0, 0.5, 0.4, 0.4], False),  # the third was faster than the two before
        ([1.0, 0.5, 0.4, 0.4, 0.39], True),
        ([1.0, 0.4, 0.6, 0.5], True),  # others disturbed: it is not faster
    ],
)
def test_rounds_are_steady_when_they_get_no_faster(seconds: list[float], expected: bool) -> None:
    assert steady(seconds) is expected


@pytest.mark.parametrize(
    ("statements", "expected"),
    [([450], True), ([205, 240], True), ([97, 91, 89, 120], True), ([175, 179, 9, 90], False)],
)
def test_a_worker_that_only_ticks_and_claims_takes_no_part(statements: list[int], expected: bool) -> None:
    assert all_take_part(statements) is expected


def test_rounds_come_to_their_calls_and_processor_time_over_all_their_seconds() -> None:
    done = Done(calls=160, seconds=0.5, used={"workers": 0.32})
    done.calls, done.seconds = done.calls + 160, done.seconds + 1.5
    done.used["workers"] += 0.64
    assert done.values("2 workers") == {"2 workers": 160.0, "2 workers: workers": pytest.approx(3.0)}


def test_samples_tell_what_busy_connections_did_and_for_which_functions() -> None:
    seen = Counter({("processor", "begin"): 2, ("IO: WalSync", "begin"): 1, ("IO: WalSync", "finish"): 5})
    done = Done(seen=seen)
    assert done.share(("IO: WalSync", "LWLock: WALWrite")) == 75.0
    assert done.statements() == "finish 62 %, begin 38 %"


def test_without_a_sample_nothing_is_said() -> None:
    assert (Done().share(("processor",)), Done().statements()) == (0.0, "")
