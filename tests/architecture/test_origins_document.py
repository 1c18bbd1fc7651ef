"""docs/explanation/origins.md promises nothing that does not exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from agentmesh.cli.commands import _COMMANDS
from agentmesh.store import code
from agentmesh.tui.commands.catalog import COMMANDS
from agentmesh.tui.input.keys import DEFAULTS, label

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "explanation" / "origins.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in DOCUMENT.splitlines()
    if line.startswith("|") and not line.startswith(("|---", "| what |"))
]
KEYS = {label(key) for known in DEFAULTS for key in known.keys.split(",")}
TOOLS = {path.stem for path in (ROOT / "agentmesh" / "tools" / "prompts").glob("*.md")}
SETTINGS = "".join(
    (ROOT / "docs" / page).read_text(encoding="utf-8")
    for page in ("reference/configuration.md", "how-to/agent-types.md")
)
CLI = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "agentmesh" / "cli").glob("*.py"))
SQL = "".join(code.files().values())


def exists(named: str) -> bool:
    """Return whether there is what a piece of code in the text names."""
    if named.startswith("agentmesh "):
        return named.split()[1] in _COMMANDS
    if named.startswith("/"):
        return named[1:] in COMMANDS
    if named.startswith("--"):
        return f'"{named}"' in CLI
    if named.startswith("v_"):
        return f"create view agentmesh.{named} " in SQL
    if tool := re.match(r"(\w+)\(", named):
        return tool[1] in TOOLS
    return named in TOOLS or f"`{named}`" in SETTINGS or f"`{named}/`" in SETTINGS or (ROOT / named).exists()


def names_in(path: str) -> set[str]:
    """Return the names of the tests in a file."""
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_every_row_is_there_once():
    assert len(ROWS) == len({what for what, *_ in ROWS}) == 100
    assert all(len(row) == 3 and all(row) for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_a_row_names_exists(row):
    _, where, tests = row
    assert [named for named in re.findall(r"`([^`]+)`", where) if not exists(named)] == []
    assert [key for key in re.findall(r"\b(?:F\d+|(?:Ctrl|Alt)\+\S)", where) if key not in KEYS] == []
    named = [test.split("::") for test in re.findall(r"`([^`]+)`", tests)]
    assert named, "a row has its test"
    assert [name for path, name in named if name not in names_in(path)] == []


def test_every_row_has_a_test():
    assert all(".py::" in row[2] for row in ROWS)
    assert DOCUMENT.count("\n| ") == len(ROWS) + DOCUMENT.count("\n| what |")
    assert "Not here" not in DOCUMENT


@pytest.mark.parametrize("named", ["agentmesh fly", "/fly", "--fly", "v_fly", "fly(away)", "fly", "limits.fly"])
def test_what_does_not_exist_is_found(named):
    assert not exists(named)
