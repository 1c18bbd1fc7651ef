"""Shows a waiting call in full: a command as it is, a change of a file as a diff."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentmesh.domain.text import one_line, visible
from agentmesh.tui.conversation import tool_text
from agentmesh.tui.requests.line_diff import unified
from agentmesh.tui.requests.request_text import command_in_full

if TYPE_CHECKING:
    from agentmesh.domain.rows import Request

_FILE = 1 << 20
"""Bytes of a file that is compared."""
_SHOWN = 256 * 1024
"""Characters that are shown."""
_DESCRIPTION = 120
"""Characters of a command's description that are shown."""
_MARK = "\ufeff"
_UNCHANGED = "(nothing changes)"


@dataclass(frozen=True, slots=True)
class Proposal:
    """The text that is shown of a call; never markup."""

    text: str
    path: str = ""
    """The file whose diff the text is; empty for any other text."""
    remark: str = ""
    """A remark for the person."""


def proposal(request: Request, workdir: Path | None) -> Proposal:
    """Return the call in full, or the question; ``workdir`` is None if the session's files are on another host."""
    arguments = request.arguments
    if request.kind == "question":
        return Proposal(visible(request.question or ""))
    if request.tool == "bash" and isinstance(arguments.get("command"), str):
        return _cut(Proposal(command_in_full(arguments["command"]), remark=_command_remark(arguments)))
    if request.tool in ("write", "edit") and isinstance(arguments.get("path"), str):
        return _cut(_change(request.tool, arguments, workdir))
    given = {name: value for name, value in arguments.items() if value is not None}  # the others were left out
    return _cut(Proposal(visible(tool_text.arguments_in_full(json.dumps(given, ensure_ascii=False)))))


def _command_remark(arguments: dict[str, Any]) -> str:
    """Return the model's description of a command, marked as such and in one line, and its timeout.

    It stands above the choices: with lines of its own, it could look like them, or push them out of sight.
    """
    said = one_line(visible(str(arguments.get("description") or "")), _DESCRIPTION)
    timeout = arguments.get("timeout")
    return " · ".join(
        [
            *([f"it says: {said}"] if said else []),
            *([f"timeout {timeout:g} s"] if isinstance(timeout, int | float) else []),
        ]
    )


def _change(tool: str, arguments: dict[str, Any], workdir: Path | None) -> Proposal:
    path = str(arguments["path"])
    before = _content(workdir / path) if workdir else None
    if tool == "write":
        return _write(path, str(arguments.get("content", "")), before, workdir)
    old, new = (str(arguments.get(name, "")) for name in ("old", "new"))
    if before is None or _has_crlf(before):  # as edit takes them
        old, new = _lines_of(old), _lines_of(new)
    text = None if before is None else _lines_of(before)
    if text is None or old not in text:
        where = "of another host, so only the replaced text is shown" if workdir is None else "without this text now"
        return Proposal(_diff(old, new), path, f"The file is {where}.")
    times = -1 if arguments.get("replace_all") else 1
    return Proposal(_diff(text, text.replace(old, new, times)), path)


def _write(path: str, content: str, before: str | None, workdir: Path | None) -> Proposal:
    """Return the diff of a write to a file with the text ``before``; None if the file cannot be read."""
    is_there = workdir is not None and os.path.lexists(workdir / path)
    remarks = _form_remarks(before or "", content)
    if before is None and is_there:
        remarks.insert(0, "What is there now cannot be compared: it is replaced whole.")
    elif not is_there:
        remarks.insert(0, "A new file." if workdir else "The session's files are on another host.")
    text = _diff(_lines_of(before or ""), _lines_of(content))
    return Proposal("(no word changes)" if text == _UNCHANGED and before != content else text, path, " ".join(remarks))


def _form_remarks(before: str, content: str) -> list[str]:
    """Say what a write does to the form of a file, which its lines do not show."""
    remarks = []
    if _has_crlf(content):
        remarks.append("Its lines end with CRLF.")
    elif _has_crlf(before):
        remarks.append("Its lines no longer end with CRLF.")
    if before.startswith(_MARK) != content.startswith(_MARK):
        remarks.append("Its byte order mark " + ("goes." if before.startswith(_MARK) else "is new."))
    return remarks


def _has_crlf(text: str) -> bool:
    """Return whether all lines end with CRLF."""
    return "\r\n" in text and text.count("\r\n") == text.count("\n") == text.count("\r")


def _lines_of(text: str) -> str:
    """Return a text as it is compared: without a mark, and with plain newlines if all lines end with CRLF."""
    text = text.removeprefix(_MARK)
    return text.replace("\r\n", "\n") if _has_crlf(text) else text


def _content(path: Path) -> str | None:
    """Return the text of a file; None if it is missing, large or no text."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > _FILE:
                return None
            return file.read().decode("utf-8")
    except (OSError, ValueError):
        return None


def _diff(before: str, after: str) -> str:
    """Return a unified diff with everything visible."""
    return visible("\n".join(unified(before, after))) or _UNCHANGED


def _cut(made: Proposal) -> Proposal:
    if len(made.text) <= _SHOWN:
        return made
    left = len(made.text) - _SHOWN
    return replace(
        made, text=made.text[:_SHOWN], remark=f"{left:,} more characters are not shown! {made.remark}".rstrip()
    )
