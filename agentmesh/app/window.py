"""Compare a model's context with the parts of every request of a session, and warn if not even one turn fits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentmesh.llm.bounds import BYTES_PER_TOKEN

_ANSWER: Final = 1024
"""Tokens of an answer, unless the server is given a limit: fewer are hardly an answer."""


def warning(model: str, window: int, system_prompt: str, tools: Sequence[Mapping[str, Any]], answer: int | None) -> str:
    """Return a warning for people if one turn does not fit into a window, otherwise an empty text.

    ``answer`` is the limit of output tokens that the server is given, None if it decides itself.
    """
    sent = system_prompt + json.dumps(tools, ensure_ascii=False, separators=(",", ":"))
    head, most = len(sent.encode("utf-8", "replace")) // BYTES_PER_TOKEN, answer or _ANSWER
    if head + most < window:
        return ""
    lower = f" lower providers.{model.partition('/')[0]}.max_tokens," if answer else ""
    return (
        f"The context of {model} has {window:,} tokens. System prompt and tools take about {head:,}, and an answer may "
        f"have {most:,}: not even one turn fits. Give the model a larger context,{lower} or offer fewer tools "
        "(tools.set, MCP servers)."
    )
