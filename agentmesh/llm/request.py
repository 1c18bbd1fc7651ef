"""The bytes of a request: the same for the same ChatRequest, and with the same prefix for two forked conversations."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from agentmesh.domain.text import storable_json
from agentmesh.llm import history
from agentmesh.llm.port import ChatRequest

_OURS = frozenset({"model", "messages", "tools", "stream", "stream_options"})
_LATER_NAME = {"max_tokens": "max_completion_tokens"}
"""The name that OpenAI's newer models want for a parameter that they refuse."""
IMAGES = "images"
"""A feature besides parameters that models without sight refuse."""
EMPTY_CONTENT = "empty content"
"""A feature besides parameters that some servers refuse: the text ``""`` in a message with tool calls."""


@dataclass(frozen=True, slots=True)
class Quirks:
    """Features that a server was seen to refuse, for one model."""

    without: frozenset[str] = frozenset()
    """Parameters that it refuses."""
    renamed: frozenset[str] = frozenset()
    """Parameters that it wants under their later name."""

    def learn(self, parameter: str, answer: str) -> Quirks:
        """Return the quirks with a refused parameter, without its opposite; the answer may mention its later name."""
        later = _LATER_NAME.get(parameter)
        if later and later in answer:
            return replace(self, renamed=self.renamed | {parameter})
        opposite = history.OPPOSITES.get(parameter, "")
        return replace(self, without=self.without - {opposite} | {parameter})


def parameters(request: ChatRequest, quirks: Quirks) -> dict[str, Any]:
    """Return the request's fields except ``messages``, which come last in the bytes."""
    fields: dict[str, Any] = {"model": request.model}
    if request.settings.get("stream") is not False and "stream" not in quirks.without:
        fields["stream"] = True
        if "stream_options" not in quirks.without:
            fields["stream_options"] = request.settings.get("stream_options", {"include_usage": True})
    for name in sorted(request.settings):
        value = request.settings[name]
        final = _LATER_NAME[name] if name in quirks.renamed else name
        if name not in _OURS and final not in quirks.without and value is not None:
            fields[final] = value
    if request.tools:
        fields["tools"] = list(request.tools)
    return fields


def has_empty_content(request: ChatRequest) -> bool:
    """Whether a message of the request has tool calls and an empty text."""
    return any(message.get("tool_calls") and message.get("content") == "" for message in request.messages)


def with_null_content(request: ChatRequest) -> ChatRequest:
    """Return the request with null instead of the empty text beside tool calls."""
    messages = [
        {**message, "content": None} if message.get("tool_calls") and message.get("content") == "" else message
        for message in request.messages
    ]
    return replace(request, messages=messages)


def encode(fields: Mapping[str, Any], request: ChatRequest) -> bytes:
    """Return the body; replace characters that no server accepts (NUL, lone surrogates). Raise ValueError for NaN."""
    text = _text(fields, request)
    try:
        if "\\u0000" not in text:
            return text.encode()
    except UnicodeEncodeError:
        pass
    return _dump(storable_json({**fields, "messages": list(request.messages)})).encode()


def _text(fields: Mapping[str, Any], request: ChatRequest) -> str:
    """Return the body; encode the tools, most of a short conversation, only once (saves 0.1 ms)."""
    head = _dump({name: value for name, value in fields.items() if name != "tools"})
    tools = f',"tools":{_tools(Same(request.tools))}' if "tools" in fields else ""
    return f'{head[:-1]}{tools},"messages":{_dump(list(request.messages))}}}'


@dataclass(frozen=True, slots=True, eq=False)
class Same:
    """Tool definitions by identity: agents of a process share the definitions of their settings, which never change."""

    tools: Sequence[Mapping[str, Any]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.tools is other.tools

    def __hash__(self) -> int:
        return id(self.tools)


@lru_cache(maxsize=64)
def _tools(same: Same) -> str:
    return _dump(list(same.tools))


_dump = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def call_ids(request: ChatRequest) -> set[str]:
    """Return the ids of all tool calls in the conversation so far."""
    return {
        str(call.get("id"))
        for message in request.messages
        for call in message.get("tool_calls") or ()
        if isinstance(call, Mapping)
    }
