"""Work that is shared, with workers that are killed at each of its commits: in the end nothing is lost or doubled."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable

import pytest

from tests.faults import story
from tests.faults.conftest import ROUNDS
from tests.faults.work_story import COMMITS, READS, Work, assert_whole
from tests.fixtures.engine import Rig

EVERY_POINT = [
    f"{when} {name} {n + 1}" for name, times in COMMITS.items() for n in range(times) for when in ("before", "after")
]
SOME_POINTS = [
    "after start 1",
    "before match 1",
    "after match 1",
    "before finish 1",
    "after batch 1",
    "after send_later 1",
]


class Names:
    """A hook that counts what a worker runs."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    def __call__(self, when: str, name: str) -> None:
        self.seen[name] += when == "before"


def test_every_commit_of_shared_work_is_made(rig: Rig, record_property: Callable[[str, object], None]):
    names = Names()
    work = Work(rig)
    rig.worker(hook=names)
    work.play()
    known = COMMITS.keys() | story.COMMITS.keys() | story.BESIDE | story.READS | READS
    assert names.seen.keys() - known == set()
    assert {name: names.seen[name] for name in COMMITS if names.seen[name] < COMMITS[name]} == {}
    record_property("fault", ["none", 0, dict(assert_whole(rig))])


@pytest.mark.parametrize("point", EVERY_POINT if ROUNDS else SOME_POINTS)
def test_a_worker_is_killed_at_a_commit_of_shared_work(
    rig: Rig, record_property: Callable[[str, object], None], point: str
):
    work = Work(rig)
    first = rig.process(point)
    work.play(first)
    assert first.join() == -signal.SIGKILL
    record_property("fault", [f"killed {point.partition(' ')[0]} a commit", 1, dict(assert_whole(rig))])
