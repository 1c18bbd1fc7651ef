"""The load of ``tests/faults/load.py``, small and short: it works, and nothing breaks."""

from __future__ import annotations

import pytest

from tests.faults import load


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_crowd_whose_workers_and_agents_are_killed_breaks_nothing():
    with load.made(agents=12, workers=2, seed="1", delay=0.02) as made:
        report = load.run(made, 8.0, tell=False)
    assert report.broken == []
    assert report.busy == []
    assert report.calls > 0
    assert report.killed["workers"] > 0
    assert report.killed["agents"] > 0
