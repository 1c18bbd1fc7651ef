"""Keys of messages: the same key again is the same message."""

from __future__ import annotations

import uuid

from agentmesh.api.arguments import text_of
from agentmesh.domain.errors import UsageError


def key_of(key: str | None) -> str:
    """Return the key, or a new one if none is given; raise UsageError for an empty one, or for what is no text.

    With a key of our own a repetition after a lost connection does no harm.
    """
    key = text_of(key, "the key of a message")
    if key is None:
        return f"api-{uuid.uuid4()}"
    if key.strip():
        return key
    raise UsageError("the key of a message is empty", hint="Leave it out, or give one. Is a variable not set?")
