"""Models that make the same call again and again: they are told, and then stopped.

A call repeats when the step before made it with the same arguments and got the same result. That is read from the
conversation, so it survives a crash; a word from anybody begins a new count.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agentmesh.domain import jsontext
from agentmesh.domain.rows import OpenCall
from agentmesh.domain.text import one_line
from agentmesh.engine.messages import Message
from agentmesh.engine.tool import Effect, Tool

WARNED = 3
"""The call in a row that gets a note."""
ENDS = 5
"""The call in a row that ends the turn."""

_Call = tuple[str, str]
"""Name and arguments, the same for the same values."""
_Step = dict[_Call, list[Any]]
"""The results of a step's calls."""
Made = Mapping[_Call, int]
"""How many steps in a row, up to the last one, made each of its calls with the same result."""


def remark(made: Made) -> Callable[[OpenCall], str | None]:
    """Return what tells the note for a call that the model asks for after these steps, None for most."""
    again = {call: times for call, times in made.items() if times >= WARNED - 1}

    def words(call: OpenCall) -> str | None:
        times = again.get(_key(call.name, call.arguments)) if again else None
        if times is None:
            return None
        return (
            f"The last {times} calls of {call.name} had these same arguments and the same result. "
            f"If this one has it too, do something else: the turn is ended after {ENDS}."
        )

    return words


def ending(made: Made) -> dict[str, str] | None:
    """Return the error that ends the turn because of what its last steps did, None when there is no loop."""
    for (name, arguments), times in made.items():
        if times >= ENDS:
            return {
                "error": f"ended after {ENDS} identical calls with the same result: {name} {one_line(arguments, 200)}",
                "hint": "Say what it should do instead.",
                "kind": "loop",
            }
    return None


def made(messages: Sequence[Message], tools: Mapping[str, Tool]) -> Made:
    """Return what the steps of a conversation made again and again."""
    steps = _steps(messages)
    last = next(steps, {})
    counts = {call: 1 for call in last if not _may_repeat(tools.get(call[0]))}
    going = set(counts)
    for _, step in zip(range(ENDS - 1), steps, strict=False):
        going = {call for call in going if step.get(call) == last[call]}
        if not going:
            break
        for call in going:
            counts[call] += 1
    return counts


def _may_repeat(tool: Tool | None) -> bool:
    """Whether a tool is there to be called again with the same arguments: one that waits, or asks a person."""
    return tool is not None and tool.effect in (Effect.WAIT, Effect.ASK)


def _steps(messages: Sequence[Message]) -> Iterator[_Step]:
    """Yield the steps since the last message to the agent, the newest first."""
    results: dict[str, Any] = {}
    for message in reversed(messages):
        if message["role"] == "tool":
            results[message["tool_call_id"]] = _result(message["content"])
        elif message["role"] == "assistant" and message.get("tool_calls"):
            step: _Step = {}
            for call in message["tool_calls"]:
                key = _key(call["function"]["name"], call["function"]["arguments"])
                step.setdefault(key, []).append(results.pop(call["id"], None))
            yield step
        else:
            return


def _key(name: str, arguments: str) -> _Call:
    try:
        return name, json.dumps(jsontext.parse(arguments), sort_keys=True, ensure_ascii=False)
    except ValueError:
        return name, arguments


def _result(content: str) -> Any:
    """Return a result without its note, which is ours."""
    result = json.loads(content)
    return {key: value for key, value in result.items() if key != "note"} if isinstance(result, dict) else result
