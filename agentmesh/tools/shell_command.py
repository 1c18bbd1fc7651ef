"""Refuse commands that no shell can be given, and build the arguments that start a shell."""

from __future__ import annotations

import shutil

from agentmesh.engine.tool import ToolError


def require_no_nul(what: str, *texts: str) -> None:
    """Raise ToolError if a text has a NUL character, which no argument of a program can hold."""
    if any("\0" in text for text in texts):
        raise ToolError(f"The {what} contains a NUL character.", "Write it as \\0 or $'\\x00' where it is needed.")


def shell_argv(command: str, path: str) -> list[str]:
    """Return the arguments that run a command in the bash on ``path``; in sh if there is none."""
    shell = shutil.which("bash", path=path) or "/bin/sh"
    return [shell, "-c", command.encode("utf-8", "replace").decode()]
