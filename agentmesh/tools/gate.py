"""The gate before every tool call: permission rules, the session's mode, and what a person has allowed permanently."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentmesh.config.schema import Sandbox
from agentmesh.domain import permissions
from agentmesh.domain.fan_out import Start
from agentmesh.domain.parts import COMMANDS, READING, WRITING
from agentmesh.domain.permissions import Layer, Permissions, Verdict
from agentmesh.domain.shell import ShellPart, ShellReading
from agentmesh.domain.states import PermissionMode
from agentmesh.domain.text import one_line, visible
from agentmesh.domain.withheld import forbidden, withheld
from agentmesh.engine.tool import Rights, ToolContext, ToolError
from agentmesh.tools.files import elsewhere, locate
from agentmesh.tools.shell.judge import read_shell
from agentmesh.tools.wall.view import TooManyWithheld, withheld_paths
from agentmesh.tools.wall.walls import Walls
from agentmesh.workspace.roots import OwnTree

Starts = Callable[[str, Mapping[str, Any], ToolContext], Start | None]
"""``(tool, arguments, context) -> the agents that the call would start, None if it starts none``."""


class ToolGate:
    """Judges calls; parses commands and resolves paths for the permission rules."""

    def __init__(
        self, free: Iterable[str] = (), walls: Walls | None = None, starts: Starts = lambda _tool, _given, _where: None
    ) -> None:
        """``free``: tools that are not ours and change nothing. ``walls``: the walls that commands run behind.

        ``starts``: which agents a call would start.
        """
        self._free = frozenset(free)
        self.starts = starts
        self._walls = walls or Walls(Sandbox())

    def judge(
        self, tool: str, arguments: Mapping[str, Any], rights: Rights, workdir: Path, project: Path | None = None
    ) -> Verdict:
        """Return whether the call is allowed, denied, or left to a person.

        A path is resolved once for the whole judgement, so a link that changes meanwhile cannot divide it.
        """
        place = _place(tool, arguments, workdir)
        if place is not None and self._walls.mesh_files.below(os.path.realpath(workdir))(place):
            why = "it leads to the mesh's own data, configuration or passwords"
            return Verdict(permissions.Decision.DENY, why, place=place)
        verdict = permissions.judge(
            rights.allowance.mode,
            tool,
            arguments,
            Permissions.from_json(rights.rules),
            lambda command: self._without_git_content(self._read_shell(command, workdir), rights, workdir, project),
            lambda path: locate(workdir, path) if place is None else place,
            root=os.path.realpath(project or workdir),
            session=_session(rights),
            free=self._free,
            own_tree=project is not None and project != workdir,
        )
        return verdict if place is None else replace(verdict, place=place)

    def misplaced(self, tool: str, arguments: Mapping[str, Any], own: OwnTree) -> ToolError | None:
        """Return the refusal of a path outside an agent's own tree that no approval could allow; None for others."""
        given = arguments.get("path")
        if tool not in READING | WRITING or not isinstance(given, str):
            return None
        path = locate(own.root, given)
        return elsewhere(own, given, path, writes=tool in WRITING) if path.startswith("/") else None

    def withheld(self, tool: str, rights: Rights, project: Path, *, approved: bool) -> Callable[[str], bool] | None:
        """Return a function that says whether rules keep a call from reading a file; None if no rule can."""
        shows = tool in READING or tool == "edit"  # an edit shows the lines that it changes, and those beside them
        if not shows and tool not in COMMANDS:
            return None
        root = os.path.realpath(project)
        by_rules = withheld(
            Permissions.from_json(rights.rules),
            tool if tool in READING else "bash",
            asked=not approved and rights.allowance.mode is not PermissionMode.ALL,
            session=_session(rights),
            root=root,
        )
        if not shows:  # the wall hides the mesh's files from commands
            return by_rules
        of_mesh = self._walls.mesh_files.below(root)
        return lambda path: of_mesh(path) or (by_rules is not None and by_rules(path))

    def forbidden(self, tool: str, rights: Rights, project: Path) -> Callable[[str], bool] | None:
        """Return a function that says whether rules deny that a call writes a file; None if no rule can."""
        if tool != "merge" and tool not in WRITING:
            return None
        root = os.path.realpath(project)
        by_rules = forbidden(Permissions.from_json(rights.rules), root=root)
        if tool == "merge":
            return by_rules
        of_mesh = self._walls.mesh_files.below(root)
        return lambda path: of_mesh(path) or (by_rules is not None and by_rules(path))

    def _read_shell(self, command: str, workdir: Path) -> ShellReading:
        """Parse a command. If no wall can be built, mark no part as read-only, so that a person has to approve it."""
        reading = read_shell(command, workdir, self._walls.trees)
        problem = self._walls.problem()
        if not problem:
            return reading
        why = f"there is no wall for commands here ({problem})"
        parts = (replace(part, read_only=False, reason=why) if part.read_only else part for part in reading.parts)
        return replace(reading, parts=tuple(parts))

    def _without_git_content(
        self, reading: ShellReading, rights: Rights, workdir: Path, project: Path | None
    ) -> ShellReading:
        """Mark no part as read-only that may show files which rules withhold, because Git has them too.

        No wall can hide a file in Git's objects. In mode ``all`` nothing is asked, so nothing is looked for.
        """
        if rights.allowance.mode is PermissionMode.ALL or not any(part.git_content for part in reading.parts):
            return reading
        is_withheld = self.withheld("bash", rights, project or workdir, approved=False)
        known = None if is_withheld is None else _known_to_git(workdir, is_withheld)
        if known is None:
            return reading
        return replace(reading, parts=tuple(_showing(part, known) for part in reading.parts))


def _place(tool: str, arguments: Mapping[str, Any], workdir: Path) -> str | None:
    """Return where the path of a call leads, as rules see it; None for a tool that takes no path."""
    if tool not in READING | WRITING:
        return None
    return locate(workdir, str(arguments.get("path") or "."))


def _known_to_git(workdir: Path, is_withheld: Callable[[str], bool]) -> str | None:
    """Return a withheld file that Git has the content of; None if there is none."""
    from agentmesh.git.withheld import known

    try:
        present = withheld_paths(workdir, is_withheld)
    except TooManyWithheld:
        present = []  # the command is refused anyway
    return known(workdir, is_withheld, present)


def _showing(part: ShellPart, known: str) -> ShellPart:
    if not part.git_content or not part.read_only:
        return part
    what = f"what Git has of {one_line(visible(known), 80)}, and a rule withholds that"
    why = f"`{one_line(part.text, 60)}` may show {what}"
    return replace(part, read_only=False, plain=False, reason=why)


def _session(rights: Rights) -> Layer:
    """Return the rules that a person has set for the whole session."""
    return Permissions.from_json([rights.allowance.allowed]).layers[0]
