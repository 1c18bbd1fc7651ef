"""What people see: activities and live text. Losing a write here harms nobody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from psycopg import Connection

from agentmesh.domain.ids import AgentId
from agentmesh.domain.text import storable
from agentmesh.sql import statement

WORK_CHANNEL = "agentmesh_work"
PAUSE_CHANNEL = "agentmesh_pause"
_LONGEST: Final = 400
"""Bytes of an activity, as the table has it; the reason of a pause is the longest."""


def agent_channel(agent: AgentId) -> str:
    """Return the channel for mail, death, interrupts and "one of those you wait for changed"."""
    return f"agent_event_{agent}"


def session_channel(session: object) -> str:
    """Return the channel that feeds screens."""
    return f"session_event_{session}"


def set_activities(conn: Connection, activities: Mapping[AgentId, str]) -> None:
    """Say what agents are doing, in a few words each."""
    words = [storable(text).encode()[:_LONGEST].decode("utf-8", "ignore") for text in activities.values()]
    conn.execute(statement("status.activity"), {"ids": list(activities), "activities": words})


def publish(conn: Connection, messages: Sequence[tuple[str, str]]) -> None:
    """Send (channel, payload) pairs in one commit; a payload has at most 7,999 bytes."""
    channels = [channel for channel, _ in messages]
    payloads = [payload for _, payload in messages]
    conn.execute(statement("status.publish"), {"channels": channels, "payloads": payloads})
