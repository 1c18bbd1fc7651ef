"""The gate before every tool call: permission rules, the session's mode, and what a person has allowed for good."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agentmesh.domain import permissions
from agentmesh.domain.permissions import Permissions, Verdict
from agentmesh.engine.tool import Rights
from agentmesh.tools.files import locate
from agentmesh.tools.shell.judge import shell_reader


class ToolGate:
    """Judges calls; knows how commands are taken apart and where paths lead."""

    def __init__(self, free: Iterable[str] = ()) -> None:
        """``free``: tools that are not ours and change nothing."""
        self._free = frozenset(free)

    def judge(self, tool: str, arguments: Mapping[str, Any], rights: Rights, workdir: Path) -> Verdict:
        """Return whether the call is allowed, denied, or a person's to decide."""
        return permissions.judge(
            rights.allowance.mode,
            tool,
            arguments,
            Permissions.from_json(rights.rules),
            shell_reader(workdir),
            lambda path: locate(workdir, path),
            session=Permissions.from_json([rights.allowance.allowed]).layers[0],
            free=self._free,
        )
