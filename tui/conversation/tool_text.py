"""Words for tool calls: the call in one line, its result in a few words, and both in full."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agentmesh.domain import batches, images, jsontext, wait_result
from agentmesh.domain.figures import line_changes, listed, plural
from agentmesh.domain.text import one_line, printable
from agentmesh.domain.todos import TodoStatus, read_todos
from agentmesh.domain.workspaces import own_tree
from agentmesh.tui.widgets.formats import duration

if TYPE_CHECKING:
    from agentmesh.domain.rows import Request

_WIDTH = 400
"""Most characters of a head line; the screen cuts it further."""
_UUID = re.compile(r"\b([0-9a-f]{8})(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
"""Ids are shown by their beginning, as everywhere else."""
_BLINK = 0.01
"""Durations below this are not shown."""
_SHOWN = 64 * 1024
"""Characters of one result that are unfolded; the rest is in ``agentmesh log``."""
_NAMED = 5
"""Agents that a line names; it counts the others."""


def headline(name: str, arguments: str) -> str:
    """Describe a call in one line, without the tool's name."""
    args = _object(arguments)
    if args is None:
        return one_line(arguments, _WIDTH)
    saying = _HEADLINES.get(name)
    return _UUID.sub(r"\1", one_line(saying(args) if saying else _pairs(args), _WIDTH))


def failed(result: Any) -> bool:
    """Return whether a result says that the call failed."""
    if not isinstance(result, Mapping):
        return False
    return "error" in result or result.get("exit_code") not in (None, 0)


def outcome(name: str, result: Any) -> str:
    """Return a result in a few words; for a failed call, the reason."""
    if not isinstance(result, Mapping):
        return one_line(jsontext.text_or_json(result), 80)
    if "error" in result:
        return one_line(str(result["error"]), 200)
    saying = _OUTCOMES.get(name)
    return one_line(saying(result) if saying else "", 120)


def took(seconds: float) -> str:
    """Return how long a call took: 40 ms, 1.2 s, 3 min 05 s; nothing for a blink."""
    if seconds < _BLINK:
        return ""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 9.95 else duration(seconds)


def arguments_in_full(arguments: str) -> str:
    """Return the arguments one a line, texts with their own line breaks."""
    args = _object(arguments)
    return printable(arguments) if args is None else _in_full(args)


def result_in_full(result: Any) -> str:
    """Return a result, field by field; very long ones are cut, and say so."""
    if batches.is_result(result):
        text = "\n".join(batches.lines(result))
    else:
        text = _in_full(result) if isinstance(result, Mapping) else printable(jsontext.text_or_json(result))
    if len(text) <= _SHOWN:
        return text
    return f"{text[:_SHOWN]}\n… {plural(len(text) - _SHOWN, 'more character')}: agentmesh log shows all of it"


def diff_of(name: str, arguments: str, result: Any) -> str | None:
    """Return the change that an edit or a write made, as a unified diff; None for other calls and failed ones."""
    if not isinstance(result, Mapping) or "error" in result:
        return None
    if name == "edit" and isinstance(result.get("diff"), str):
        return printable(result["diff"])
    args = _object(arguments)
    if name == "write" and args is not None and isinstance(args.get("content"), str):
        lines = printable(args["content"]).removesuffix("\n").split("\n")
        return "\n".join([f"@@ -0,0 +1,{len(lines)} @@", *(f"+{line}" for line in lines)])
    return None


def path_of(arguments: str) -> str:
    """Return the path that a call names; "" if it names none."""
    return str((_object(arguments) or {}).get("path", ""))


def checklist(name: str, arguments: str) -> str | None:
    """Return the list of a todo_write, one item a line; None for other calls and malformed lists."""
    items = read_todos(arguments) if name == "todo_write" else []
    return "\n".join(f"{item.status.glyph} {one_line(item.content, _WIDTH)}" for item in items) or None


def has_items(arguments: str) -> bool:
    """Return whether a call of task is a batch."""
    return isinstance((_object(arguments) or {}).get("items"), list)


def is_about(name: str, arguments: str, request: Request) -> bool:
    """Return whether a request asks about this call, comparing arguments as text."""
    given = _object(arguments) or {}
    return request.tool == name and all(
        str(request.arguments.get(key, value)) == str(value) for key, value in given.items()
    )


def _object(arguments: str) -> Mapping[str, Any] | None:
    try:
        value = jsontext.parse(arguments or "{}")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _pairs(args: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={jsontext.text_or_json(value)}" for name, value in args.items())


def _in_full(fields: Mapping[str, Any]) -> str:
    lines = []
    for name, value in fields.items():
        key, text = printable(name), printable(jsontext.text_or_json(value)).rstrip("\n")
        lines.append(f"{key}:\n{text}" if "\n" in text else f"{key}: {text}")
    return "\n".join(lines)


def _wait(args: Mapping[str, Any]) -> str:
    listed = args.get("from_agents")
    whom = "anyone" if not isinstance(listed, list) else plural(len(listed), "agent")
    return f"for {whom}, up to {args.get('timeout', '?')} s"


def _todos(args: Mapping[str, Any]) -> str:
    items = read_todos(json.dumps(args))
    done = sum(item.status is TodoStatus.COMPLETED for item in items)
    now = next((item.content for item in items if item.status is TodoStatus.IN_PROGRESS), "")
    return f"{done}/{len(items)} done" + (f", now: {now}" if now else "")


def _lines(text: Any) -> str:
    shown = str(text or "").strip("\n").splitlines()
    return shown[0] if len(shown) == 1 else plural(len(shown), "line") if shown else "no output"


def _diff_size(result: Mapping[str, Any]) -> str:
    lines = str(result.get("diff") or "").splitlines()
    added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    removed = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    return line_changes(added, removed)


def _bash(result: Mapping[str, Any]) -> str:
    if "process_id" in result:
        return f"process {result['process_id']}, in the background"
    code = result.get("exit_code")
    return f"exit {code}, {_lines(result.get('output'))}" if code else _lines(result.get("output"))


def _listed(result: Mapping[str, Any]) -> str:
    """Return the number of hits of a search, in words."""
    for word, one in (("files", "file"), ("matches", "match"), ("lines", "line"), ("entries", "entry")):
        if isinstance(result.get(word), list):
            return f"1 {one}" if len(result[word]) == 1 else f"{len(result[word]):,} {word}"
    return ""


def _recipients(to: Any) -> str:
    return listed([str(one) for one in to], _NAMED) if isinstance(to, list) else str(to)


def _sent(result: Mapping[str, Any]) -> str:
    if isinstance(several := result.get("sent"), list):
        return f"sent to {listed([str(one['to']['name']) for one in several], _NAMED)}"
    to = result.get("to")
    return f"sent to {to.get('name')}" if isinstance(to, Mapping) else "sent"


def _fetched(result: Mapping[str, Any]) -> str:
    if "redirect" in result:
        return f"redirects to {result['redirect']}"
    return ", ".join(str(result[name]) for name in ("status", "title") if result.get(name))


_Describe = Callable[[Mapping[str, Any]], str]
_HEADLINES: Mapping[str, _Describe] = {
    "bash": lambda args: str(args.get("command", "")),
    "read": lambda args: str(args.get("path", "")) + (f" from line {args['offset']}" if "offset" in args else ""),
    "write": lambda args: str(args.get("path", "")),
    "edit": lambda args: str(args.get("path", "")),
    "glob": lambda args: str(args.get("pattern", "")),
    "grep": lambda args: " in ".join(str(args[name]) for name in ("pattern", "path") if name in args),
    "fork": lambda args: f"{args.get('name', '')}{own_tree('fork', args)}: {args.get('prompt', '')}",
    "send": lambda args: f"to {_recipients(args.get('to', ''))}: {args.get('message', '')}",
    "wait": _wait,
    "interrupt": lambda args: str(args.get("agent_id", "")),
    "kill": lambda args: str(args.get("agent_id", "")),
    "skill": lambda args: " ".join(str(args[name]) for name in ("name", "file") if args.get(name)),
    "task": lambda args: f"{args.get('description', '')}{own_tree('task', args)}",
    "ask_user": lambda args: str(args.get("question", "")),
    "todo_write": _todos,
    "web_fetch": lambda args: str(args.get("url", "")),
}
_OUTCOMES: Mapping[str, _Describe] = {
    "bash": _bash,
    "edit": _diff_size,
    "write": lambda result: f"{'created, ' if result.get('created') else ''}{result.get('bytes', '?')} bytes",
    "read": lambda result: images.labels(result) or _lines(result.get("content") or result.get("text")),
    "glob": _listed,
    "grep": _listed,
    "fork": lambda result: f"as {result.get('name')}",
    "send": _sent,
    "wait": wait_result.summary,
    "peek": lambda result: f"{result.get('unread', '?')} unread",
    "interrupt": lambda result: "" if result.get("interrupted") else "was not running",
    "kill": lambda result: "killed " + (", ".join(str(k.get("name")) for k in result.get("killed") or []) or "nobody"),
    "task": lambda result: batches.summary(result) or str(result.get("status", "")),
    "todo_write": lambda result: f"{result.get('open', '?')} open",
    "web_fetch": _fetched,
}
