"""When several workers are warm enough to be measured."""

from __future__ import annotations

import pytest

from bench.workers import all_take_part, steady


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
