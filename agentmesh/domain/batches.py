"""The result of a batch (a call of task with items) for people; a model reads it as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from agentmesh.domain.jsontext import text_or_json
from agentmesh.domain.text import printable


def is_result(result: Any) -> TypeGuard[Mapping[str, Any]]:
    """Return whether this is the result of a batch."""
    return isinstance(result, Mapping) and isinstance(result.get("results"), list) and "done" in result


def summary(result: Any) -> str:
    """Return how many items are done: ``38 of 40 done, 2 failed``; nothing for other results."""
    if not is_result(result):
        return ""
    failed = f", {_number(result['failed'])} failed" if result.get("failed") else ""
    return f"{_number(result['done'])} of {len(result['results']):,} done{failed}"


def lines(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield the summary, then each item: its place, how it ended, its sub-agent, and what that said."""
    yield summary(result)
    for place, entry in enumerate(result["results"], 1):
        known = entry if isinstance(entry, Mapping) else {}
        said = ": ".join(text_or_json(known[key]) for key in ("error", "result") if known.get(key))
        head = " ".join(str(known[key]) for key in ("status", "name") if known.get(key))
        yield from printable(f"{place}. {head}: {said}" if said else f"{place}. {head}").splitlines()
    if result.get("note"):
        yield printable(str(result["note"]))


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else "?"
