"""The gate before every tool call: permission rules, the session's mode, and what a person has allowed for good."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentmesh.config.schema import Sandbox
from agentmesh.domain import permissions
from agentmesh.domain.permissions import Permissions, Verdict
from agentmesh.domain.shell import ShellReading
from agentmesh.engine.tool import Rights
from agentmesh.tools.files import locate
from agentmesh.tools.shell.judge import read_shell
from agentmesh.tools.wall.walls import Walls


class ToolGate:
    """Judges calls; knows how commands are taken apart and where paths lead."""

    def __init__(self, free: Iterable[str] = (), walls: Walls | None = None) -> None:
        """``free``: tools that are not ours and change nothing. ``walls``: what commands run behind."""
        self._free = frozenset(free)
        self._walls = walls or Walls(Sandbox())

    def judge(self, tool: str, arguments: Mapping[str, Any], rights: Rights, workdir: Path) -> Verdict:
        """Return whether the call is allowed, denied, or a person's to decide."""
        return permissions.judge(
            rights.allowance.mode,
            tool,
            arguments,
            Permissions.from_json(rights.rules),
            lambda command: self._read_shell(command, workdir),
            lambda path: locate(workdir, path),
            session=Permissions.from_json([rights.allowance.allowed]).layers[0],
            free=self._free,
        )

    def _read_shell(self, command: str, workdir: Path) -> ShellReading:
        """Take a command apart; where no wall can be built, none of it may run without a person's approval."""
        reading = read_shell(command, workdir)
        problem = self._walls.problem()
        if not problem:
            return reading
        why = f"there is no wall for commands here ({problem})"
        parts = (replace(part, read_only=False, reason=why) if part.read_only else part for part in reading.parts)
        return replace(reading, parts=tuple(parts))
