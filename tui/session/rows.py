"""Facts about rows of a conversation: the key of an entry, and whether a row ends a message."""

from __future__ import annotations

from agentmesh.domain.rows import Row
from agentmesh.domain.states import Kind


def ends_message(row: Row) -> bool:
    """Return whether this row is or ends the message in progress."""
    return row.kind in (Kind.ASSISTANT, Kind.ERROR) or row.content.get("event") == "killed"


def call_key(seq: int, ordinal: int) -> str:
    """Return the key of a call; its result has the same key."""
    return f"{seq}.{ordinal}"


def row_of(key: str) -> int | None:
    """Return the row of an entry's key; None if the entry shows no row of the agent itself."""
    row = key.partition(".")[0]
    return int(row) if row.isdigit() else None
