"""The README's figures are those of the committed run of the benchmarks."""

from __future__ import annotations

import json
from statistics import median

from tests.docs.blocks import ROOT

FIGURES = {figure["key"]: figure for figure in json.loads((ROOT / "bench/results.json").read_text())["figures"]}


def measured(figure: str, value: str) -> float:
    """Return the median over the repetitions."""
    return float(median(FIGURES[figure]["values"][value]["samples"]))


def test_the_readme_says_what_was_measured():
    readme = " ".join((ROOT / "README.md").read_text().split())
    wakes, takes_over = measured("P3", "agentmesh p50"), measured("takeover", "first row of a new epoch")
    assert f"wakes its recipient in {wakes:.1f} ms (median), in about half of DBOS's time" in readme
    assert 0.45 <= measured("P3 peers", "agentmesh / DBOS") <= 0.55
    assert f"{takes_over:.1f} s after `kill -9` of a worker" in readme
