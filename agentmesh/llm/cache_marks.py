"""Marks that tell Anthropic's models, behind a gateway, up to where to keep a request in their cache.

Other servers keep each request that they have read, unasked. Anthropic's keep only a beginning that ends at a mark,
and look for kept beginnings near each mark. A request has four marks at most. The form is described at
https://openrouter.ai/docs/features/prompt-caching; LiteLLM takes it too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from agentmesh.llm.provider import Provider

MARKS: Final = "cache_control"
"""The field, and the name under which a server's refusal of it is learned."""
_MARK: Final = {"type": "ephemeral"}


def are_wanted(provider: Provider, model: str) -> bool:
    """Return whether a model needs marks: as the configuration says, by default Claude at OpenRouter."""
    if provider.cache_marks is not None:
        return provider.cache_marks
    host = urlsplit(provider.base_url).hostname or ""
    return (host == "openrouter.ai" or host.endswith(".openrouter.ai")) and "claude" in model.lower()


def marked(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the messages with marks at the end of the system prompt, of this request, and of the one before it.

    Tools stand before the system prompt, so they are kept with it. What a fork inherits ends where its parent's request
    has ended, or a few messages later: a server looks back far enough from the mark at the end.
    """
    found = list(messages)
    answers = [n for n, message in enumerate(found) if message.get("role") == "assistant"]
    ends = {0, len(found) - 1, answers[-1] - 1 if answers else 0}
    for n in ends:
        if 0 <= n < len(found) and found[n].get("role") != "assistant":
            found[n] = _marked(found[n])
    return found


def _marked(message: Mapping[str, Any]) -> Mapping[str, Any]:
    content = message.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
    last = max((n for n, part in enumerate(parts) if part.get("type") == "text" and part.get("text")), default=None)
    if last is None:
        return message  # an empty text must have no mark
    parts[last] = {**parts[last], MARKS: _MARK}
    return {**message, "content": parts}
