"""What a row of a conversation is to the screen: the key that its entry has, and whether it ends a message."""

from __future__ import annotations

from agentmesh.domain.rows import Row
from agentmesh.domain.states import Kind


def ends_message(row: Row) -> bool:
    """Whether a message in progress becomes this row, or ends with it."""
    return row.kind in (Kind.ASSISTANT, Kind.ERROR) or row.content.get("event") == "killed"


def call_key(seq: int, ordinal: int) -> str:
    """Return the key of a call, which is its result's too."""
    return f"{seq}.{ordinal}"


def row_of(key: str) -> int | None:
    """Return the row of an entry's key, None for what shows no row of the agent's own."""
    row = key.partition(".")[0]
    return int(row) if row.isdigit() else None
