"""Calls of the tool ``task``: state, sub-agent and progress."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

from agentmesh.domain import jsontext
from agentmesh.domain.ids import AgentId
from agentmesh.domain.text import one_line


class TaskMark(Enum):
    """How a task stands: a glyph, a word and its role in the theme; colour is never the only sign."""

    RUNNING = ("◐", "running", "running")
    BACKGROUND = ("◐", "background", "running")
    COMPLETED = ("✓", "completed", "received")
    FAILED = ("✗", "failed", "dead")
    KILLED = ("✗", "killed", "dead")
    TIMEOUT = ("◷", "timeout", "warning")
    INTERRUPTED = ("⏸", "interrupted", "warning")
    MAX_STEPS = ("▣", "max steps", "warning")

    def __init__(self, glyph: str, label: str, role: str) -> None:
        self.glyph = glyph
        self.label = label
        self.role = role

    @classmethod
    def of(cls, status: str | None) -> TaskMark:
        """Return the mark of a status as the tool's result has it; None: it runs."""
        return cls.RUNNING if status is None else cls.__members__.get(status.upper(), cls.FAILED)


class Task(NamedTuple):
    """A task, as it was when the board was read. Its step has at least one running task."""

    parent: AgentId
    key: str
    """The key of the call, made by ``rows.call_key``."""
    child: AgentId
    mark: TaskMark
    tool_calls: int
    tokens: int
    """Both counted since the task began."""
    seconds: float
    """How long it took, or has been running."""


class TaskResult(NamedTuple):
    """The result of a ``task`` call, read."""

    child: AgentId
    name: str
    mark: TaskMark
    tool_calls: int
    tokens: int
    said: str
    """The beginning of the answer, or the reason why it is missing."""


def ended(result: Any) -> TaskResult | None:
    """Return a result, read; None if the call was refused, so that no sub-agent worked on it."""
    if not isinstance(result, Mapping) or not isinstance(result.get("status"), str):
        return None
    try:
        child = AgentId(UUID(str(result.get("agent_id"))))
    except ValueError:
        return None
    said = next((_said(result[name]) for name in ("error", "result", "note") if result.get(name)), "")
    mark = TaskMark.of(result["status"])
    return TaskResult(
        child,
        one_line(str(result.get("name") or "?"), 40),
        mark,
        _number(result.get("tool_calls")),
        _number(result.get("tokens")),
        "" if said == mark.label else one_line(said, 200),
    )


def _said(value: Any) -> str:
    """Return a text as it is, the text in a report without a form, and any other result as JSON."""
    if isinstance(value, Mapping) and value.keys() == {"result"} and isinstance(value["result"], str):
        return value["result"]
    return value if isinstance(value, str) else jsontext.line(value)


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0
