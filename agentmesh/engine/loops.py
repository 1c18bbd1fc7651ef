"""Models that make the same step again and again: they are warned, and then stopped.

A step repeats the one before if it makes the same calls and all their results are the same. Then, as far as the model
can know, nothing has changed in between. Another call, another result or a message from anybody begins a new count. The
count is taken from the rows in memory, so it survives a crash and costs no query.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agentmesh.domain import jsontext
from agentmesh.domain.rows import OpenCall, Row
from agentmesh.domain.states import Kind
from agentmesh.domain.text import one_line
from agentmesh.engine.tool import Effect, Tool

WARNED: Final = 3
"""From this step in a row on, calls get a note."""
ENDS: Final = 5
"""The step in a row that ends the turn."""
PATIENCE: Final = 3
"""If results differ only in times and durations, this many times as many steps: a log may be watched that way."""
_VARIES: Final[Mapping[str, frozenset[str]]] = {
    "send": frozenset({"message_id"}),
    "task": frozenset({"agent_id", "cost_usd", "name", "tokens", "tool_calls"}),
}
"""Parts that differ in results of our tools although nothing has changed."""
_NAMED: Final = 3
"""Calls of a step that the error names."""

_TIME = r"\d{1,2}:\d{2}:\d{2}(?:[.,]\d{1,9})?(?:Z|\s?[AP]M\b|[+-]\d{2}:?\d{2})?"
_UNIT = r"(?:ns|[uµ]s|ms|s|secs?|seconds?|mins?|minutes?|h|hours?)"
_VOLATILE: Final = re.compile(
    rf"(?<![\w.:])(?:\d{{4}}-\d{{2}}-\d{{2}}[T ]{_TIME}|{_TIME}|1\d{{9}}(?:\d{{3}}|\.\d{{1,9}})?"
    rf"|(?:\d{{1,9}}[hm]\s?){{0,2}}\d{{1,9}}(?:\.\d{{1,9}})?\s?{_UNIT})(?![\w:])",
    re.ASCII,
)
"""Times of day, seconds since 1970, durations: all that differs if the same tests fail in the same way again."""

_Call = tuple[str, str]
"""Name and arguments, in a form that is the same for the same values."""
_Step = dict[_Call, list[Any]]
"""The results of a step's calls, whatever the order of the calls."""


@dataclass(frozen=True, slots=True)
class Streak:
    """How often in a row the newest step was made."""

    calls: Mapping[_Call, int] = field(default_factory=dict)
    """Its calls, and how often it made each."""
    same: int = 0
    """Steps with the same results; 0 if the newest step is meant to be repeated."""
    alike: int = 0
    """Steps whose results differ at most in times and durations."""

    @property
    def ended(self) -> bool:
        """Whether the turn must be ended."""
        return self.same >= ENDS or self.alike >= ENDS * PATIENCE

    def note(self, calls: Sequence[OpenCall]) -> str | None:
        """Return the note for the model with the results of its next calls; usually None."""
        if not self._is_told or self.calls != Counter(_key(call.name, call.arguments) for call in calls):
            return None
        times, results, ends = self._found
        return (
            f"The last {times} steps made {'this same call' if len(calls) == 1 else 'these same calls'}, {results}. "
            "If nothing has changed now either, do something else; to wait for an agent, use wait. "
            f"The turn is ended after {ends} such steps."
        )

    def error(self) -> dict[str, str]:
        """Return the error that ends the turn."""
        _, results, ends = self._found
        calls = "; ".join(f"{name} {one_line(arguments, 200)}" for name, arguments in list(self.calls)[:_NAMED])
        more = f"; {len(self.calls) - _NAMED} more" if len(self.calls) > _NAMED else ""
        return {
            "error": f"ended after {ends} identical steps in a row, {results}: {calls}{more}",
            "hint": "Say what it should do instead.",
            "kind": "loop",
        }

    @property
    def _is_told(self) -> bool:
        return self.same >= WARNED - 1 or self.alike >= WARNED * PATIENCE - 1

    @property
    def _found(self) -> tuple[int, str, int]:
        """Return the number of steps, a comparison of their results, and the number that ends the turn."""
        if self.same >= ENDS or (self.same >= WARNED - 1 and not self.ended):
            return self.same, "with the same results", ENDS
        return self.alike, "with results that differ only in times and durations", ENDS * PATIENCE


def streak(rows: Sequence[Row], tools: Mapping[str, Tool]) -> Streak:
    """Return how often the newest step of a conversation was made in a row; reads no more rows than needed."""
    steps = _steps(rows)
    last = next(steps, None)
    if last is None or any(_may_repeat(tools.get(name)) for name, _ in last):
        return Streak()
    same = alike = 1
    steady: _Step | None = None
    for step in steps:
        if alike == same and step == last:
            same += 1
        else:
            steady = steady or _steady(last)
            if step.keys() != last.keys() or _steady(step) != steady:
                break
        alike += 1
        if same == ENDS or alike == ENDS * PATIENCE:
            break
    return Streak({call: len(results) for call, results in last.items()}, same, alike)


def _may_repeat(tool: Tool | None) -> bool:
    """Whether a tool is meant to be called again with the same arguments: it waits or asks a person."""
    return tool is not None and tool.effect in (Effect.WAIT, Effect.ASK)


def _steps(rows: Sequence[Row]) -> Iterator[_Step]:
    """Yield the steps since the last message to the agent, newest first."""
    results: dict[str, Any] = {}
    for row in reversed(rows):
        if row.kind == Kind.TOOL_RESULT:
            results[row.content["call_id"]] = _compared(row.content["name"], row.content["result"])
        elif row.kind == Kind.ASSISTANT and row.content.get("calls"):
            step: _Step = {}
            for call in row.content["calls"]:
                step.setdefault(_key(call["name"], call["arguments"]), []).append(results.pop(call["id"], None))
            yield step
        else:
            return


def _key(name: str, arguments: str) -> _Call:
    try:
        return name, json.dumps(jsontext.parse(arguments or "{}"), sort_keys=True, ensure_ascii=False)
    except ValueError:
        return name, arguments


def _compared(tool: str, result: Any) -> Any:
    """Return a result without our own parts: its note, and the values that differ each time."""
    if not isinstance(result, dict):
        return result
    dropped = {"note", *_VARIES.get(tool, ())}
    kept = {key: value for key, value in result.items() if key not in dropped}
    if tool == "send" and isinstance(result.get("sent"), list):
        kept["sent"] = [_compared(tool, each) for each in result["sent"]]
    return kept


def _steady(value: Any) -> Any:
    """Return a value without the times and durations in its texts."""
    match value:
        case str():
            return _VOLATILE.sub("", value)
        case dict():
            return {key: _steady(inner) for key, inner in value.items()}
        case list():
            return [_steady(inner) for inner in value]
        case _:
            return value
