from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.__main__ import GROUPS, LIMIT
from bench.harness import PATIENCE, Bench, Figure, another


def _bench(**form: Any) -> Bench:
    return Bench(cast("Any", SimpleNamespace(server_pid=os.getpid())), any_load=True, **form)


def _repeated(bench: Bench, figure: Figure) -> int:
    bench.measure(lambda: {"value": 1.0}, figure)
    return len(figure.samples)


def test_what_the_groups_may_take_leaves_room_for_void_repetitions() -> None:
    assert sum(group.seconds for group in GROUPS.values()) + PATIENCE <= LIMIT


@pytest.mark.parametrize(
    ("form", "times", "expected"),
    [
        ({}, {}, 3),
        ({}, {"repetitions": 2}, 2),
        ({}, {"repetitions": 3, "ordinary": 1}, 1),
        ({"full": True}, {}, 5),
        ({"full": True}, {"repetitions": 3, "ordinary": 1}, 3),
        ({"quick": True}, {}, 1),
    ],
)
def test_how_often_it_is_repeated_in_each_form(form: dict[str, bool], times: dict[str, Any], expected: int) -> None:
    figure = Figure("P0", "a title", {"value": "ms"}, **times)
    assert _repeated(_bench(**form), figure) == expected


@pytest.mark.parametrize(
    ("good", "void", "wanted", "patience", "expected"),
    [
        (0, 0, 3, 0.0, True),
        (2, 0, 3, 0.0, True),
        (3, 0, 3, 60.0, False),
        (0, 1, 1, 60.0, True),  # the only repetition was void
        (0, 2, 1, 60.0, False),
        (2, 3, 3, 60.0, True),
        (0, 3, 3, 60.0, True),
        (0, 6, 3, 60.0, False),
        (1, 2, 3, 0.0, False),  # nobody waits any longer for an undisturbed one
        (1, 1, 3, 0.0, True),
    ],
)
def test_void_repetitions_are_made_again_while_there_is_patience(
    good: int, void: int, wanted: int, patience: float, expected: bool
) -> None:
    assert another(good, void, wanted, patience) is expected


@pytest.mark.parametrize(("seconds", "verdict"), [(599.0, "pass"), (601.0, "FAIL")])
def test_a_whole_run_that_takes_too_long_misses_a_target(seconds: float, verdict: str) -> None:
    bench = _bench()
    bench.took(seconds, LIMIT)
    (figure,) = bench.figures
    assert [figure.verdict(target) for target in figure.targets] == [verdict]
