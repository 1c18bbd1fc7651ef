"""What people see: activities and live text. If a write is lost here, no harm is done."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import uuid4

from psycopg import Connection

from agentmesh.domain.ids import AgentId
from agentmesh.domain.text import storable
from agentmesh.sql import statement

WORK_CHANNEL = "agentmesh_work"
PAUSE_CHANNEL = "agentmesh_pause"
PREFIX_CHANNEL = "agentmesh_prefix"
"""Its payload is the key of a prefix that is warm now, or that the next agent may read; or a model whose server has a
slot that is free."""
REPEAT: Final = "repeat "
"""Begins a payload of an agent's channel that asks for its answer in progress; the channel to answer on follows."""
OUTPUT: Final = "output "
"""Begins a payload of a session's channel that shows what running calls have written last; no row changed."""
_SCREEN: Final = re.compile("screen_[0-9a-f]{32}")
_LONGEST: Final = 400
"""Bytes of an activity, as the table has it; the reason of a pause is the longest."""


def agent_channel(agent: AgentId) -> str:
    """Return the channel for mail, death, interrupts and changes in an agent that it waits for."""
    return f"agent_event_{agent}"


def session_channel(session: object) -> str:
    """Return the channel that feeds screens."""
    return f"session_event_{session}"


def screen_channel() -> str:
    """Return a new channel for one screen alone."""
    return f"screen_{uuid4().hex}"


def is_screen_channel(channel: str) -> bool:
    """Return whether a channel may be a screen's. Names need a check, because anybody may notify."""
    return _SCREEN.fullmatch(channel) is not None


def ask_for_text(conn: Connection, agent: AgentId, channel: str) -> None:
    """Ask the worker that runs an agent for its answer so far, to be sent on a screen's channel."""
    publish(conn, [(agent_channel(agent), f"{REPEAT}{channel}")])


def set_activities(conn: Connection, activities: Mapping[AgentId, str]) -> None:
    """Record what agents are doing, in a few words each."""
    words = [storable(text).encode()[:_LONGEST].decode("utf-8", "ignore") for text in activities.values()]
    conn.execute(statement("status.activity"), {"ids": list(activities), "activities": words})


def publish(conn: Connection, messages: Sequence[tuple[str, str]]) -> None:
    """Send (channel, payload) pairs in one commit; a payload has at most 7,999 bytes."""
    channels = [channel for channel, _ in messages]
    payloads = [payload for _, payload in messages]
    conn.execute(statement("status.publish"), {"channels": channels, "payloads": payloads})
