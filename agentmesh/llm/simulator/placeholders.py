"""Placeholders of script files: ``{agent}``, ``{result:fork.agent_id}`` and the like, filled from the request.

    {agent} {parent} {model} {step}   the asking agent, and how many answers it has given since the last input
    {last}                            text of the last message
    {images}                          the images of the request: media type, size and digest of each
    {input}                           text of the last message from the user or another agent
    {match:N}                         group N of the rule's ``matches``
    {result:TOOL.path}                from the last result of a tool since the last input; a path is keys and numbers
    {results:TOOL.path}               the same of every such result: a list

``{{agent}}`` is the text ``{agent}``. Braces that do not look like a placeholder stay as they are, JSON for example.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from agentmesh.llm.simulator.reply import NoReply
from agentmesh.llm.simulator.request import ChatRequestView, Exchange

_PLACEHOLDER = re.compile(r"\{(\{)?([a-z_]+)(?::([^{}]*))?\}(?(1)\})")
_PLAIN: dict[str, Callable[[ChatRequestView], Any]] = {
    "agent": lambda view: view.agent,
    "parent": lambda view: view.fork.parent if view.fork else "",
    "model": lambda view: view.model,
    "step": lambda view: view.step,
    "last": lambda view: view.last_text,
    "images": lambda view: ", ".join(map(str, view.images)) or "no image",
    "input": lambda view: view.input_text,
}
_WITH_ARGUMENT = ("match", "result", "results")


def check(value: Any) -> str:
    """Return the problem with the placeholders in a value, or an empty string."""
    if isinstance(value, dict):
        return next(filter(None, map(check, value.values())), "")
    if isinstance(value, list):
        return next(filter(None, map(check, value)), "")
    if not isinstance(value, str):
        return ""
    for found in _PLACEHOLDER.finditer(value):
        escaped, name, argument = found.groups()
        if escaped or (name in _PLAIN and argument is None) or (name in _WITH_ARGUMENT and argument):
            continue
        known = ", ".join([*_PLAIN, *(f"{name}:..." for name in _WITH_ARGUMENT)])
        return f"unknown placeholder {found[0]}; there are {known}; write {{{found[0]}}} for the text itself"
    return ""


def fill(value: Any, view: ChatRequestView, match: re.Match[str] | None) -> Any:
    """Return the value with every placeholder filled; a placeholder that is a whole string keeps its JSON type."""
    if isinstance(value, dict):
        return {key: fill(item, view, match) for key, item in value.items()}
    if isinstance(value, list):
        return [fill(item, view, match) for item in value]
    if not isinstance(value, str):
        return value
    whole = _PLACEHOLDER.fullmatch(value)
    if whole and not whole[1]:
        return _lookup(whole, view, match)
    return fill_text(value, view, match)


def fill_text(text: str, view: ChatRequestView, match: re.Match[str] | None) -> str:
    """Return the text with every placeholder filled."""
    return _PLACEHOLDER.sub(lambda found: found[0][1:-1] if found[1] else _text(_lookup(found, view, match)), text)


def _lookup(found: re.Match[str], view: ChatRequestView, match: re.Match[str] | None) -> Any:
    name, argument = found[2], found[3]
    if name in _PLAIN:
        return _PLAIN[name](view)
    if name == "match":
        if match is None or not argument.isdigit() or int(argument) > (match.re.groups):
            raise NoReply(f"{found[0]}: the rule's `matches` has no such group")
        return match[int(argument)] or ""
    tool, _, path = argument.partition(".")
    exchanges = [exchange for exchange in view.exchanges() if exchange.name == tool]
    if name == "results":
        return [_follow(exchange, path, found[0]) for exchange in exchanges]
    if not exchanges:
        raise NoReply(f"{found[0]}: there is no result of {tool} since the last input")
    return _follow(exchanges[-1], path, found[0])


def _follow(exchange: Exchange, path: str, placeholder: str) -> Any:
    value = exchange.result
    for key in filter(None, path.split(".")):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise NoReply(f'{placeholder}: there is no "{key}" in {exchange.text[:200]}')
    return value


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return json.dumps(value, ensure_ascii=False)
