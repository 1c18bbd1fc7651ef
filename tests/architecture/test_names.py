"""A module's or class's name says what is in it to somebody who has not read it; these do not."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
MODULES = {
    *("deeds", "doing", "telling", "whose", "twice", "leftovers", "lookout", "travels", "sayings", "toolwords"),
    *("needs", "underway", "outcomes", "compacting"),
}
CLASSES = {"Ears", "Hears", "Hearing", "Share", "Wakes", "Hands", "Hosted", "Hosts", "Going", "Signs"}
ONE_THING = {"Answer", "Finished", "Gate", "OwnWait", "Place"}
"""Names that stood for two to five classes each; one at most may have each of them."""


def sources():
    for folder in ("agentmesh", "tui"):
        yield from ((path, path.read_text(encoding="utf-8")) for path in (ROOT / folder).rglob("*.py"))


def test_no_module_has_a_name_that_says_nothing():
    assert sorted(path.name for path, _ in sources() if path.stem in MODULES) == []


def test_no_class_has_one_and_none_of_these_stands_for_two():
    places = defaultdict(set)
    for path, text in sources():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].add(str(path.resolve().relative_to(ROOT)))
    assert sorted(places.keys() & CLASSES) == []
    assert {name: sorted(places[name]) for name in ONE_THING if len(places[name]) > 1} == {}
