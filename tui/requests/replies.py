"""How a person leaves a dialog, and the answers that they can give, as ``agentmesh.answer`` takes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from agentmesh.domain import jsontext
from agentmesh.domain.text import one_line, printable, visible

if TYPE_CHECKING:
    from agentmesh.domain.permissions import Layer, Rule
    from agentmesh.domain.rows import Request

_SEPARATORS = frozenset("\u2028\u2029")
"""Characters that end a line in Textual's text area, beside those that no terminal can show."""


class BadEdit(Exception):
    """The edited text is not valid as arguments."""


class Reply(NamedTuple):
    """How a person left a dialog."""

    action: Literal["answer", "edits", "go", "later", "list", "next", "open"]
    """``edits``: allow it, and edits from now on; ``go``: to the asker's view; ``later``: put aside; ``list``: show all
    that wait; ``next``: the next one that waits; ``open``: the one chosen from the list."""
    words: Mapping[str, Any] = field(default_factory=dict)
    """The answer, as ``agentmesh.answer`` takes it."""
    draft: str = ""
    """The text of the field, for the next time."""
    requests: tuple[Request, ...] = ()
    """The requests of the list that are answered or opened."""


def edit_text(request: Request) -> str:
    """Return the text of a call that a person may edit: a command, a file's text, else all arguments as JSON."""
    if part := _edited_part(request):
        return str(request.arguments[part])
    text = visible(json.dumps(request.arguments, indent=2, ensure_ascii=False))
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def edit_says(request: Request) -> str:
    """Return what stands above the text to edit."""
    match _edited_part(request):
        case "command":
            return "What is to run instead:"
        case "content":
            return f"What {one_line(visible(str(request.arguments.get('path', '?'))), 60)} is to hold instead:"
        case _:
            return "The arguments instead, as JSON:"


def _edited_part(request: Request) -> str:
    """Return the argument that is edited as text; empty if all are edited as JSON.

    JSON escapes what a field of text would drop, or would make a newline.
    """
    part = {"bash": "command", "write": "content"}.get(request.tool, "")
    text = request.arguments.get(part)
    return part if isinstance(text, str) and printable(text) == text and not _SEPARATORS.intersection(text) else ""


def edited(request: Request, text: str) -> dict[str, Any]:
    """Return the answer "once, with these arguments"; raise BadEdit if they are not valid."""
    if text == edit_text(request):
        return {"decision": "once"}
    part = _edited_part(request)
    if part == "command" and not text.strip():
        raise BadEdit("There is no command left; Esc goes back, and n refuses.")
    if part:
        return {"decision": "once", "arguments": {**request.arguments, part: text}}
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


def proposed_rules(request: Request) -> str:
    """Return the rules of "always" as a person edits them, one a line; "" if a line cannot show one of them."""
    from agentmesh.config.rules import rule_text

    lines = [rule_text(rule) for rule in _rules_of(request)]
    return "\n".join(lines) if all(printable(line) == line and "\n" not in line for line in lines) else ""


def always(request: Request, text: str, workdir: Path) -> dict[str, Any]:
    """Return the answer "always" with the rules of an edited text; raise BadEdit if they will not do."""
    if text.strip() == proposed_rules(request):
        return {"decision": "always"}
    from agentmesh.domain.permissions import Permissions

    rules = tuple(_allow_rule(line) for line in text.splitlines() if line.strip())
    if not rules:
        raise BadEdit("There is no rule left; Esc goes back.")
    if left := _uncovered(request, rules, workdir):
        raise BadEdit(f"No rule here covers `{one_line(visible(left), 60)}`: this call would ask again.")
    return {"decision": "always", "rules": Permissions((rules,)).to_json()[0]}


def _allow_rule(line: str) -> Rule:
    """Return the rule of a line; raise BadEdit if the line is no rule, or allows too much."""
    from agentmesh.config.forms import BadValue
    from agentmesh.config.rules import parsed
    from agentmesh.domain.command_prefixes import breadth_objection
    from agentmesh.domain.permissions import Decision

    try:
        rule = parsed(Decision.ALLOW, line)
    except BadValue as refused:
        raise BadEdit(f"A line {refused.complaint}.") from refused
    if objection := breadth_objection(rule.tool, rule.pattern):
        raise BadEdit(f"{objection[0].upper()}{objection[1:]}.")
    return rule


def _uncovered(request: Request, rules: Layer, workdir: Path) -> str:
    """Return a part of the call that the proposed rules cover and these do not; "" if these cover all."""
    from functools import partial

    from agentmesh.domain.permissions import uncovered
    from agentmesh.tools.files import locate
    from agentmesh.tools.shell.judge import read_shell

    shell, where = partial(read_shell, workdir=workdir), partial(locate, workdir)
    return uncovered(request.tool, request.arguments, _rules_of(request), rules, shell, where, str(workdir))


def _rules_of(request: Request) -> Layer:
    """Return the rules that "always" would make."""
    from agentmesh.domain.permissions import Permissions

    return Permissions.from_json([request.rules]).layers[0]
