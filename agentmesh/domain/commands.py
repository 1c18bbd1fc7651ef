"""Rows of kind ``command``: a person's command and its result. No model sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentmesh.domain import wait_result
from agentmesh.domain.jsontext import text_or_json

_LONGEST = 4_000
"""Characters of an argument that a row keeps; the mail has the whole message, the settings the whole system prompt."""


def row_content(name: str, arguments: Sequence[str], text: str) -> dict[str, Any]:
    """Return the content of a slash command's row; ``text`` is the answer that the person saw."""
    kept = [one if len(one) <= _LONGEST else f"{one[:_LONGEST]}…" for one in arguments]
    return {"command": name, "arguments": kept, "text": text}


def typed(content: Mapping[str, Any]) -> str:
    """Return the line that a person typed: ``/send coder hello``, ``!ls``."""
    name, arguments = str(content.get("command") or "command"), content.get("arguments")
    words = [name if name.startswith(("/", "!")) else f"/{name}"]
    return " ".join([*words, *(map(str, arguments) if isinstance(arguments, list) else ())])


def outcome(content: Mapping[str, Any]) -> str:
    """Return the result, "" if other rows show it; for a wait, each agent's status (its messages follow as mail)."""
    result = content.get("result")
    if isinstance(result, Mapping) and "results" in result:
        return wait_result.summary(result)
    said = content.get("text") or content.get("output")
    if said or result is None:
        return str(said or "")
    return (
        "\n".join(f"{name}: {value}" for name, value in result.items())
        if isinstance(result, Mapping)
        else text_or_json(result)
    )
