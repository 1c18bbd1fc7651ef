"""The closed sets of states that rows may be in; docs/explanation/state-machine.md draws how they change."""

from __future__ import annotations

from enum import StrEnum


class AgentStatus(StrEnum):
    """Status of an agent in the database."""

    RUNNING = "running"
    """A turn is running or queued, or the agent is inside a wait. Becomes idle, dead."""
    IDLE = "idle"
    """No turn runs or is queued, and no unread mail would wake it. Becomes running, dead."""
    DEAD = "dead"
    """Killed; final. Readable forever, mail to it is refused."""


class WaitStatus(StrEnum):
    """Status of one awaited agent in the result of a wait."""

    RECEIVED = "received"
    RUNNING = "running"
    IDLE = "idle"
    DEAD = "dead"


class WaitOutcome(StrEnum):
    """Why a wait ended."""

    COMPLETE = "complete"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"
    USER = "user"
    PROCESS = "process"
    """Mail about a process in the background."""


class Kind(StrEnum):
    """Kind of a transcript row."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL_RESULT = "tool_result"
    MAIL = "mail"
    SUMMARY = "summary"
    CAPTURE = "capture"
    COMMAND = "command"
    EVENT = "event"
    MARK = "mark"
    ERROR = "error"


class CallStatus(StrEnum):
    """Status of a tool call."""

    OPEN = "open"
    """Asked for by the model, not started. Becomes asking, delegated, started, done."""
    ASKING = "asking"
    """Waits for a person's answer. Becomes open, done."""
    DELEGATED = "delegated"
    """A sub-agent works on it. Becomes done."""
    STARTED = "started"
    """A tool with effects has begun. Becomes done."""
    DONE = "done"
    """Its one result is in the transcript; final."""


class PermissionMode(StrEnum):
    """What tools may do without asking, per session."""

    ASK = "ask"
    EDITS = "edits"
    ALL = "all"
    PLAN = "plan"
