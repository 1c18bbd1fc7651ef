"""How an extra is installed is said in one way, which is true: agentmesh is not on PyPI."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from agentmesh.domain import extras

ROOT = Path(__file__).parents[2]
TEXTS = [
    path
    for folder in ("agentmesh", "tui", "docs", "scripts")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".md"} and path.is_file()
]
CALL = re.compile(r"""install_words\(["'](\w+)["']\)""")


def test_nothing_sends_a_person_to_pypi_for_agentmesh_itself() -> None:
    wrong = re.compile(r"pip install '?agentmesh\b")
    found = [path for path in [*TEXTS, ROOT / "README.md"] if wrong.search(path.read_text(encoding="utf-8"))]
    assert found == []


def test_every_extra_that_is_named_is_there_and_said_as_in_the_documentation() -> None:
    named = {name for path in TEXTS for name in CALL.findall(path.read_text(encoding="utf-8"))}
    there = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert named == there.keys() - {"dev"}


@pytest.mark.parametrize("extra", ["mcp", "serve"])
def test_the_words_are_those_of_the_documentation(extra: str) -> None:
    assert extras.install_words(extra) == f"pip install '.[{extra}]' in a checkout of agentmesh"
