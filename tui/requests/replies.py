"""How a person leaves a dialog, and the answers that they can give, as ``agentmesh.answer`` takes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from agentmesh.domain import jsontext
from agentmesh.domain.text import one_line, printable

if TYPE_CHECKING:
    from agentmesh.domain.rows import Request


class BadEdit(Exception):
    """The edited text is not valid as arguments."""


class Reply(NamedTuple):
    """How a person left a dialog."""

    action: Literal["answer", "go", "later", "next"]
    """``go``: to the asker's view; ``later``: put aside; ``next``: the next one that waits."""
    words: Mapping[str, Any] = field(default_factory=dict)
    """Of an answer, as ``agentmesh.answer`` takes it."""
    draft: str = ""
    """What stands in the field, for the next time."""


def edit_text(request: Request) -> str:
    """Return what a person may edit of a call: the command of bash, else all arguments as JSON."""
    if _is_command(request):
        return printable(request.arguments["command"])
    return printable(json.dumps(request.arguments, indent=2, ensure_ascii=False))


def edited(request: Request, text: str) -> dict[str, Any]:
    """Return the answer "once, with these arguments"; raise BadEdit if they are not valid."""
    if text == edit_text(request):
        return {"decision": "once"}
    if _is_command(request):
        if not text.strip():
            raise BadEdit("There is no command left; Esc goes back, and n refuses.")
        return {"decision": "once", "arguments": {**request.arguments, "command": text}}
    try:
        arguments = jsontext.parse(text)
    except ValueError as error:
        raise BadEdit(f"This is no JSON: {one_line(str(error), 100)}.") from error
    if not isinstance(arguments, dict):
        raise BadEdit("The arguments are a JSON object: {...}.")
    return {"decision": "once", "arguments": arguments}


def refused(reason: str) -> dict[str, Any]:
    """Return the answer "no", with a reason if there is one."""
    return {"decision": "no", "reason": reason.strip()} if reason.strip() else {"decision": "no"}


def _is_command(request: Request) -> bool:
    return request.tool == "bash" and isinstance(request.arguments.get("command"), str)
