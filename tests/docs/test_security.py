"""The promises of docs/explanation/security.md name the tests that show them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/explanation/security.md"


def test_16_every_test_that_the_promises_name_exists() -> None:
    table = PAGE.read_text().partition("## What is promised")[2].partition("What no wall promises")[0]
    rows = [line.rsplit("|", 2)[1] for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 10
    defined = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    for row in rows:
        named = re.findall(r"`(test_\w+)`", row)
        assert named
        assert set(named) <= defined
