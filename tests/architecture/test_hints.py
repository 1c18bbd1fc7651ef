"""Errors of agents are read on every surface: their advice names no command that only the screen has."""

from __future__ import annotations

import re

import pytest

from agentmesh.tui.commands.catalog import COMMANDS
from tests.fixtures.commands import ROOT

_SLASH = re.compile(rf"""["'`\s]/(?:{"|".join(COMMANDS)})\b""")


@pytest.mark.parametrize("package", ["app", "engine", "llm"])
def test_no_advice_of_an_agent_s_error_is_a_command_of_the_screen(package: str):
    files = sorted((ROOT / "agentmesh" / package).rglob("*.py"))
    named = {str(file.relative_to(ROOT)): _SLASH.findall(file.read_text(encoding="utf-8")) for file in files}
    assert {file: words for file, words in named.items() if words} == {}
