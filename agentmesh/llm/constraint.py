"""How a server is asked for a tool call and nothing else: by ``tool_choice``, else by ``response_format``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from agentmesh.llm.port import ChatRequest

TOOL_CHOICE: Final = "tool_choice"
RESPONSE_FORMAT: Final = "response_format"
NONE: Final = "none"
FORCED: Final = "forced call"
"""A feature besides parameters: the server is asked for a call and nothing else. Many make a grammar from that."""
_WAYS: Final = (TOOL_CHOICE, RESPONSE_FORMAT, NONE)
"""In the order in which they are tried."""


def settings(request: ChatRequest, refused: Collection[str], known: str | None = None) -> Mapping[str, Any]:
    """Return the parameters for this request; none if it need not be a call, or the server has ``refused`` them all.

    ``known``: the way that is known to work, NONE if no way does. An answer that
    ``response_format`` forces is a call as text, which ``textcalls`` reads.
    """
    if not (request.must_call and request.tools):
        return {}
    left = _WAYS[_WAYS.index(known) :] if known in _WAYS else _WAYS
    way = next(each for each in left if each not in refused)
    if way == NONE:
        return {}
    return {way: "required" if way == TOOL_CHOICE else form(request)}


def after(sent: Mapping[str, Any]) -> str:
    """Return the way to try next, given the parameters of a request that was not answered by a call."""
    return NONE if RESPONSE_FORMAT in sent else RESPONSE_FORMAT


def form(request: ChatRequest) -> dict[str, Any]:
    """Return the ``response_format`` that allows only a call of one of the request's tools, as text."""
    names = [tool["function"]["name"] for tool in request.tools]
    call = {
        "type": "object",
        "properties": {"name": {"type": "string", "enum": names}, "arguments": {"type": "object"}},
        "required": ["name", "arguments"],
    }
    return {"type": "json_schema", "json_schema": {"name": "tool_call", "schema": call}}
