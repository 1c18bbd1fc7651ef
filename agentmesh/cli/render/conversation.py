"""Rows of a transcript, for people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeGuard

from rich.text import Text

from agentmesh.cli.render.figures import cut_off
from agentmesh.domain import batches, commands, images, jsontext, mail, wait_result
from agentmesh.domain.ids import short
from agentmesh.domain.rows import Row, Taken
from agentmesh.domain.states import Kind
from agentmesh.domain.text import one_line, printable
from agentmesh.domain.workspaces import own_tree

if TYPE_CHECKING:
    from agentmesh.store.tasks import GivenTask

_FOLDED_LINES = 12
"""Lines of a tool's result that are shown unless all are wanted."""
_ARGUMENTS_WIDTH = 300
_NAME_WIDTH = 60
"""Characters of a tool's name: the model wrote it, and may have made it up."""


def row_text(row: Row, name: str, *, full: bool = False) -> Text | None:
    """Return one row of the agent called ``name``, or None if it shows nothing; fold tool results unless ``full``."""
    content = row.content
    match row.kind:
        case Kind.USER:
            who, style = ("agentmesh", "dim") if content.get("correction") else ("user", "bold green")
            return _said(_noted(who, mail.answers(content)), style, images.with_labels(content.get("text"), content))
        case Kind.MAIL:
            number = f"message {content['mail_id']}" if full and "mail_id" in content else ""
            note = ", ".join(filter(None, [number, mail.notes(content)]))
            return _mail(str(content.get("name")), content.get("text"), note)
        case Kind.ASSISTANT:
            return _answer(content, name, full)
        case Kind.TOOL_RESULT:
            return Text("\n").join([_result(row, full), *map(_taken, row.mail)])
        case Kind.ERROR:
            return _block("✗ ", "red", "\n".join(filter(None, [content.get("error"), content.get("hint")])))
        case Kind.EVENT:
            return _block("· ", "dim", content.get("text") or content.get("event"))
        case Kind.COMMAND:
            return _block("· ", "dim", _command(content, full))
        case Kind.SUMMARY | Kind.CAPTURE | Kind.MARK:
            return _block(f"· {row.kind}: ", "dim", content.get("text") or content.get("label"))


def task_text(task: GivenTask) -> Text:
    """Return the line that names the sub-agent of a task call, and how to watch it."""
    kind = f" ({one_line(task.subagent_type, 60)})" if task.subagent_type else ""
    return _block("  ↳ ", "yellow", f"{task.name}{kind}: agentmesh log {short(task.child)}")


def _answer(content: Any, name: str, full: bool) -> Text | None:
    parts = []
    if full and content.get("reasoning"):
        parts.append(_block("  ~ ", "dim italic", content["reasoning"]))
    if content.get("text"):
        parts.append(_said(name, "bold cyan", content["text"]))
    parts.extend(_call(call, full) for call in content.get("calls") or [])
    if content.get("interrupted"):
        parts.append(_block("· ", "dim", "interrupted here"))
    if (cut := cut_off(content)) and "ending" not in content:  # an event of its own reports that
        parts.append(_block("· ", "dim", cut))
    return Text("\n").join(parts) if parts else None


def _call(call: Any, full: bool) -> Text:
    arguments = (
        printable(str(call.get("arguments", "")))
        if full
        else one_line(str(call.get("arguments", "")), _ARGUMENTS_WIDTH)
    )
    name = one_line(str(call.get("name")), _NAME_WIDTH)
    return _block("  → ", "yellow", f"{name}{_own_tree(name, call)} {arguments}")


def _own_tree(name: str, call: Any) -> str:
    """Return that a call gives its child a tree of its own, because its arguments may be cut before they say so."""
    try:
        return own_tree(name, jsontext.parse(call.get("arguments", "")))
    except (TypeError, ValueError):
        return ""


def _command(content: Any, full: bool) -> str:
    """Return a person's command and its result; the messages of a wait follow as mail."""
    said = _json(content["result"]) if full and "result" in content else commands.outcome(content)
    return f"{commands.typed(content)}: {said}" if said else commands.typed(content)


def _result(row: Row, full: bool) -> Text:
    """Return a tool's result; for a wait, each agent's status, and only texts that are not messages."""
    content, result = row.content, row.content.get("result")
    if content.get("name") == "wait" and _is_of_wait(result):
        if not full:
            return _block("  ← wait ", "dim", one_line(wait_result.summary(result), _ARGUMENTS_WIDTH))
        result = wait_result.without_mail(result, row.mail)
    failed = isinstance(result, dict) and "error" in result
    lines = list(_result_lines(result))
    hidden = 0 if full else len(lines) - _FOLDED_LINES
    if hidden > 0:
        lines = [*lines[:_FOLDED_LINES], f"… {hidden:,} more lines (--full)"]
    if not full:
        lines = [line if len(line) <= _ARGUMENTS_WIDTH else line[:_ARGUMENTS_WIDTH] + "…" for line in lines]
    return _block(
        f"  ← {one_line(str(content.get('name')), _NAME_WIDTH)} ", "red" if failed else "dim", "\n".join(lines)
    )


def _result_lines(result: Any) -> Iterator[str]:
    """Yield a result's fields, each text with its own line breaks."""
    if not isinstance(result, dict):
        yield from printable(_json(result)).splitlines()
        return
    if batches.is_result(result):
        yield from batches.lines(result)
        return
    if found := images.labels(result):
        yield from found.splitlines()
        result = {key: value for key, value in result.items() if key != "images"}
    for key, value in result.items():
        text = printable(value if isinstance(value, str) else _json(value))
        yield from f"{key}: {text}".splitlines()


def _is_of_wait(result: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(result, dict) and "results" in result


def _taken(one: Taken) -> Text:
    """Return a message that a wait took, in the form of any other message."""
    if one.by_user:
        return _said(_noted("user", one.notes), "bold green", one.text)
    return _mail(one.name, one.text, one.notes)


def _mail(name: str, text: Any, note: str) -> Text:
    return _said(_noted(name, note), "bold magenta", text)


def _noted(who: str, note: str) -> str:
    return f"{one_line(who, 60)} ({note})" if note else one_line(who, 60)


def _said(who: str, style: str, text: Any) -> Text:
    return _block(f"{one_line(who, 160)} ▸ ", style, text, body="")


def _block(label: str, style: str, text: Any, body: str | None = None) -> Text:
    """Return a label and a text whose further lines are indented below the first."""
    first, *later = printable(str(text or "")).rstrip().split("\n")
    indent = " " * min(len(label), 4)
    below = "".join(f"\n{indent}{line}".rstrip(" ") for line in later)
    return Text.assemble((label, style), (first + below, style if body is None else body))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
