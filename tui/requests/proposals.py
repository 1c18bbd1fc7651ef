"""What a waiting call would do, in full: a command as it is, a change of a file as a diff."""

from __future__ import annotations

import difflib
import json
import os
import stat
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmesh.domain.text import visible
from agentmesh.tui.conversation import tool_text

if TYPE_CHECKING:
    from agentmesh.domain.rows import Request

_FILE = 1 << 20
"""Bytes of a file that is compared."""
_SHOWN = 256 * 1024
"""Characters that are shown."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What is shown of a call; never markup."""

    text: str
    is_diff: bool = False
    remark: str = ""
    """What a person should know of it."""


def proposal(request: Request, workdir: Path | None) -> Proposal:
    """Return what the call would do; ``workdir`` is None where the session's files are not this host's."""
    arguments = request.arguments
    if request.kind == "question":
        return Proposal(visible(request.question or ""))
    if request.tool == "bash" and isinstance(arguments.get("command"), str):
        return _cut(Proposal(visible(arguments["command"]), remark=_command_remark(arguments)))
    if request.tool in ("write", "edit") and isinstance(arguments.get("path"), str):
        return _cut(_change(request.tool, arguments, workdir))
    return _cut(Proposal(visible(tool_text.arguments_in_full(json.dumps(arguments, ensure_ascii=False)))))


def _command_remark(arguments: dict[str, Any]) -> str:
    """Return the model's description of a command, and its timeout."""
    said = str(arguments.get("description") or "")
    timeout = arguments.get("timeout")
    return " · ".join(
        filter(None, [visible(said), f"timeout {timeout:g} s" if isinstance(timeout, int | float) else ""])
    )


def _change(tool: str, arguments: dict[str, Any], workdir: Path | None) -> Proposal:
    path = str(arguments["path"])
    before = _content(workdir / path) if workdir else None
    if tool == "write":
        content = str(arguments.get("content", ""))
        is_there = workdir is not None and os.path.lexists(workdir / path)
        if before is None and is_there:
            return Proposal(
                _diff("", content, path), True, "What is there now cannot be compared: it is replaced whole."
            )
        remark = "" if is_there else "A new file." if workdir else "The session's files are on another host."
        return Proposal(_diff(before or "", content, path), True, remark)
    old, new = str(arguments.get("old", "")), str(arguments.get("new", ""))
    if before is None or old not in before:
        where = "of another host, so only the replaced text is shown" if workdir is None else "without this text now"
        return Proposal(_diff(old, new, path), True, f"The file is {where}.")
    times = -1 if arguments.get("replace_all") else 1
    return Proposal(_diff(before, before.replace(old, new, times), path), True)


def _content(path: Path) -> str | None:
    """Return the text of a file with plain newlines; None if it is missing, large or no text."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > _FILE:
                return None
            return file.read().decode("utf-8").removeprefix("\ufeff").replace("\r\n", "\n")
    except (OSError, ValueError):
        return None


def _diff(before: str, after: str, path: str) -> str:
    """Return a unified diff with everything visible."""
    names = (path, path) if path.startswith("/") else (f"a/{path}", f"b/{path}")
    lines = difflib.unified_diff(list(StringIO(before)), list(StringIO(after)), *names)
    text = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return visible(text.removesuffix("\n")) or "(nothing changes)"


def _cut(made: Proposal) -> Proposal:
    if len(made.text) <= _SHOWN:
        return made
    left = len(made.text) - _SHOWN
    return Proposal(made.text[:_SHOWN], made.is_diff, f"{left:,} more characters are not shown! {made.remark}".rstrip())
