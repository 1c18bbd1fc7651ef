"""Read tool calls that a model wrote as text, as small local models do if their server does not parse them.

The answer must be nothing else: one or several ``<tool_call>`` elements, or fenced JSON blocks, each with calls of
tools that the request offered. An answer with other text, or with an unknown tool, stays text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from agentmesh.domain import jsontext
from agentmesh.llm.bounds import MOST_CALLS
from agentmesh.llm.port import ChatRequest, Reply, ToolCall
from agentmesh.llm.toolcalls import OpenCall, unique_ids

_PIECE = re.compile(
    r"<tool_call>(.*?)</tool_call>|```(?:json|tool_call|tool_code)?[ \t]*\n(.*?)\n[ \t]*```(?!\S)", re.DOTALL
)
_ARGUMENTS = ("arguments", "parameters")
_BESIDES = frozenset({"id", "type", "index"})
"""Keys that a call may have besides its name and arguments."""


def read(reply: Reply, request: ChatRequest, taken_ids: Callable[[], Collection[str]], seed: bytes) -> Reply:
    """Return the reply with the calls in its text and a note that keeps the text; otherwise the reply unchanged."""
    if reply.tool_calls or not request.tools or reply.finish_reason not in ("stop", "tool_calls"):
        return reply
    calls = _calls(reply.text, {tool["function"]["name"] for tool in request.tools})
    if not calls:
        return reply
    ids, _ = unique_ids([OpenCall(name=name) for name, _ in calls], taken_ids(), seed)
    return replace(
        reply,
        text="",
        tool_calls=tuple(ToolCall(call_id, *call) for call_id, call in zip(ids, calls, strict=True)),
        finish_reason="tool_calls",
        notes=(*reply.notes, f"The tool calls were read from text: {reply.text.strip()}"),
    )


def _calls(text: str, offered: Collection[str]) -> list[tuple[str, str]]:
    """Return name and arguments of each call in the text; an empty list if it has other text or too many calls."""
    calls: list[tuple[str, str]] = []
    end = 0
    for piece in _PIECE.finditer(text):
        if text[end : piece.start()].strip():
            return []
        end = piece.end()
        found = _document(piece[1] if piece[1] is not None else piece[2], offered)
        if not found:
            return []
        calls += found
    return [] if text[end:].strip() or len(calls) > MOST_CALLS else calls


def _document(text: str, offered: Collection[str]) -> list[tuple[str, str]]:
    """Return the calls in a JSON text: an object, or a list of them."""
    try:
        value = jsontext.parse(text, strict=False)  # models put line breaks into their strings
    except ValueError:
        return []
    found = [_call(entry, offered) for entry in (value if isinstance(value, list) else [value])]
    calls = [call for call in found if call is not None]
    return calls if len(calls) == len(found) else []


def _call(value: Any, offered: Collection[str]) -> tuple[str, str] | None:
    """Return name and arguments of ``{"name", "arguments"}``, also below ``function`` or as ``parameters``."""
    if not isinstance(value, Mapping):
        return None
    inner = value.get("function")
    if isinstance(inner, Mapping):
        return _call(inner, offered) if value.keys() <= {"function", *_BESIDES} else None
    naming = "name" if "name" in value else "function"
    name, given = value.get(naming), [key for key in _ARGUMENTS if key in value]
    if not isinstance(name, str) or name not in offered or len(given) != 1:
        return None
    if not value.keys() <= {naming, *given, *_BESIDES}:
        return None
    arguments = _arguments(value[given[0]])
    return None if arguments is None else (name, arguments)


def _arguments(value: Any) -> str | None:
    """Return the arguments as JSON text, given an object or its text."""
    if isinstance(value, str):
        try:
            value = jsontext.parse(value)
        except ValueError:
            return None
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else None
