"""Groups of the benchmark, run as a person runs them: what they measure is not judged, but each can be measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GROUPS = ("sending", "appending", "forking", "killing", "context", "programs", "stepping", "year")
"""Those that need no other program and little time: 40 s in all, of which a server's start takes 4."""


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_quick_groups_can_be_measured(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench", "--quick", "--any-load", "--out", str(tmp_path), *GROUPS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr  # 1: a target was missed
    figures = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["figures"]
    assert [figure for figure in figures if figure["failed"]] == [], done.stderr
    assert "could not be measured" not in done.stderr
    assert len(figures) >= len(GROUPS)
