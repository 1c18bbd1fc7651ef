"""docs/explanation/reliability.md says what the checks and the faults say, and names no test that is not there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from agentmesh.sql import sentence
from agentmesh.store import checks
from tests.faults import work_story
from tests.faults.story import COMMITS

TESTS = Path(__file__).parents[1]
DOCUMENT = (TESTS.parent / "docs" / "explanation" / "reliability.md").read_text(encoding="utf-8")
SECTIONS = dict(part.split("\n", 1) for part in DOCUMENT.split("\n## ")[1:])
BROKEN = [line for line in SECTIONS["What broke elsewhere"].splitlines() if line.startswith("| ")][1:]


def missing(text: str) -> list[str]:
    """Return the tests and files of tests in a text that do not exist."""
    named = re.findall(r"`([a-z0-9_]+/test_\w+\.py)(?:::(test_\w+))?`", text)
    return [f"{path}::{name}" for path, name in named if not _exists(TESTS / path, name)]


def _exists(path: Path, name: str) -> bool:
    if not path.exists():
        return False
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return not name or any(isinstance(node, ast.FunctionDef) and node.name == name for node in tree.body)


def test_every_test_that_is_named_exists():
    assert missing(DOCUMENT) == []


def test_every_defect_of_others_has_a_test():
    assert len(BROKEN) >= 20
    assert [line for line in BROKEN if "::test_" not in line] == []


def test_what_does_not_exist_is_found():
    here = "architecture/test_reliability_document.py"
    text = f"`store/test_nothing.py::test_x`, `{here}::test_nothing`, `{here}::test_what_does_not_exist_is_found`"
    assert missing(text) == ["store/test_nothing.py::test_x", f"{here}::test_nothing"]


def test_the_invariants_are_those_that_are_checked():
    told = re.findall(r"^\| `(\w+)` \| (.+) \|$", SECTIONS["What holds at every instant"], re.MULTILINE)
    assert told == [(name.partition(".")[2], sentence(name)) for name in checks.INVARIANTS]


def test_the_commits_are_those_at_which_workers_are_killed():
    told = re.findall(r"`([a-z_]+)`", SECTIONS["Where a worker can die"])
    assert told == [*COMMITS, *(name for name in work_story.COMMITS if name not in COMMITS)]
