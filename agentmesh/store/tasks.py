"""Tasks as people follow them: which sub-agent works on which call, and how far it is."""

from __future__ import annotations

from typing import NamedTuple

from psycopg import Connection
from psycopg.rows import class_row

from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.sql import statement


class TaskView(NamedTuple):
    """A call of task and how its sub-agent is getting on with it."""

    parent: AgentId
    seq: int
    ordinal: int
    """The call: the parent's step, and its place in it."""
    child: AgentId
    status: str | None
    """How it ended; None while it runs."""
    tool_calls: int
    tokens: int
    """Both are counted since the task began."""
    seconds: float
    """How long it took, or has been running."""


class GivenTask(NamedTuple):
    """A call of task, for readers of the caller's conversation."""

    ordinal: int
    child: AgentId
    name: str
    subagent_type: str | None


class TaskCall(NamedTuple):
    """The call that gave a sub-agent a task."""

    child: AgentId
    from_seq: int
    """The sub-agent's rows after this one belong to the task."""
    call_id: str


def shown(conn: Connection, session: SessionId) -> list[TaskView]:
    """Return the tasks of all steps of the session in which one still runs, in the order of the calls."""
    with conn.cursor(row_factory=class_row(TaskView)) as cursor:
        return cursor.execute(statement("tasks.shown"), {"session": session}).fetchall()


def given(conn: Connection, agent: AgentId, seq: int) -> list[GivenTask]:
    """Return the tasks that an agent gave in a step, in the order of its calls."""
    with conn.cursor(row_factory=class_row(GivenTask)) as cursor:
        return cursor.execute(statement("tasks.given"), {"agent": agent, "seq": seq}).fetchall()


def calls(conn: Connection, agent: AgentId) -> list[TaskCall]:
    """Return the calls that gave the agent its tasks, or else the calls for the nearest sub-agent above it."""
    with conn.cursor(row_factory=class_row(TaskCall)) as cursor:
        return cursor.execute(statement("tasks.calls"), {"agent": agent}).fetchall()
