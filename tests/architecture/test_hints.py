"""Errors of agents are read on every surface: their advice names no command that only the screen has."""

from __future__ import annotations

import re

import pytest

from agentmesh.tui.commands.advice import LISTS
from agentmesh.tui.commands.catalog import COMMANDS
from tests.fixtures.commands import ROOT

_LISTS = re.compile(r"\bagentmesh ([^`'\"]+?) lists\b")
_ONLY_IN_THE_SHELL = {"workspaces"}
_SLASH = re.compile(rf"""["'`\s]/(?:{"|".join(COMMANDS)})\b""")


@pytest.mark.parametrize("package", ["app", "engine", "llm"])
def test_no_advice_of_an_agent_s_error_is_a_command_of_the_screen(package: str):
    files = sorted((ROOT / "agentmesh" / package).rglob("*.py"))
    named = {str(file.relative_to(ROOT)): _SLASH.findall(file.read_text(encoding="utf-8")) for file in files}
    assert {file: words for file, words in named.items() if words} == {}


@pytest.mark.parametrize(("package", "kind"), [("sql/functions", "sql"), ("store", "py")])
def test_the_screen_has_its_own_command_for_what_advice_says_to_list(package: str, kind: str):
    files = (ROOT / "agentmesh" / package).rglob(f"*.{kind}")
    named = {name for file in files for name in _LISTS.findall(file.read_text(encoding="utf-8"))}
    assert named - set(LISTS) == _ONLY_IN_THE_SHELL
    assert {own.removeprefix("/") for own in LISTS.values()} <= set(COMMANDS)
