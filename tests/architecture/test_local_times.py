"""People read times in their own zone: the database gives UTC, which must not be printed as it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_OF_TIMES = re.compile("%[YmdHMS]")


def formatted(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each value that an f-string writes as a time."""
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.FormattedValue)
            and node.format_spec
            and _OF_TIMES.search(ast.unparse(node.format_spec))
        ):
            yield node.lineno, ast.unparse(node.value)


def test_a_time_is_brought_into_the_zone_of_its_reader_where_it_is_written():
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {value}"
        for folder in ("agentmesh", "tui")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, value in formatted(path.read_text(encoding="utf-8"))
        if ".astimezone(" not in value and value != "local"
    ]
    assert wrong == []
