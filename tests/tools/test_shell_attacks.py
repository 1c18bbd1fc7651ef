"""Lines that try to pass for reading, though they write, run another program, or read outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentmesh.tools.shell.judge import read_shell


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory with a way out in it, and files whose names are options."""
    work = tmp_path_factory.mktemp("attacks") / "work"
    (work / "src").mkdir(parents=True)
    (work / "options").mkdir()
    for name in ("a", "abc", "abd", "options/-ox", "options/--pre=x"):
        (work / name).write_text("x\n")
    (work / "leak").symlink_to("/etc/passwd")
    (work / "out").symlink_to("/etc")
    return work


_LINES = [
    json.loads(line)
    for line in Path(__file__).with_name("attacks.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize("command", _LINES)
def test_a_line_with_an_effect_or_a_read_outside_is_not_taken_for_reading(work: Path, command: str):
    reading = read_shell(command, work)
    assert reading.problem or not all(part.read_only for part in reading.parts)
