"""Todos: the board of a session's work. An agent claims one, and then only that agent works on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row, scalar_row

from agentmesh.domain.ids import AgentId, SessionId
from agentmesh.domain.text import storable
from agentmesh.sql import statement
from agentmesh.store.call import Lease, bigint, caller, scalar

_DONE = 20


@dataclass(frozen=True, slots=True)
class BoardTodo:
    """Something to do."""

    id: int
    content: str
    after: Sequence[int]
    """Todos that must be done first."""
    status: str
    """open, claimed or done."""
    is_ready: bool
    """Whether it can be claimed."""
    owner: AgentId | None
    """The agent that works on it, or did it."""
    owner_name: str | None
    created_by_name: str
    note: str | None
    """What came of it."""


def add_todo(
    conn: Connection,
    session: SessionId,
    agent: AgentId | None,
    content: str,
    after: Sequence[int] = (),
    lease: Lease | None = None,
) -> int:
    """Put something to do on the session's board; return its number. No agent means a person.

    ``after``: todos that must be done first. Raise BadArgument, UnknownTodo, TooManyTodos, DeadAgent or OtherSession.
    """
    first = [bigint(todo, "a todo") for todo in after]
    values = {"session": session, "agent": agent, "content": storable(content), "after": first, **caller(lease)}
    return scalar(conn, statement("todos.add_todo"), values, int)


def claim_todo(
    conn: Connection, session: SessionId, agent: AgentId, todo: int | None = None, lease: Lease | None = None
) -> int | None:
    """Give an open todo to an agent, or the oldest that is ready; return its number, None if none is ready.

    Raise TodoTaken, which names the agent that has it, TodoNotReady or UnknownTodo. A todo that the agent has already
    stays its own.
    """
    number = None if todo is None else bigint(todo, "the todo")
    values = {"session": session, "agent": agent, "todo": number, **caller(lease)}
    with conn.cursor(row_factory=scalar_row) as cursor:
        taken: int | None = cursor.execute(statement("todos.claim_todo"), values).fetchone()
    return taken


def finish_todo(
    conn: Connection,
    session: SessionId,
    agent: AgentId | None,
    todo: int,
    outcome: str | None = None,
    lease: Lease | None = None,
) -> None:
    """Mark a todo as done, with what came of it. A person (no agent) may do that with any.

    Raise TodoTaken if another agent has it, TodoNotReady, UnknownTodo or BadArgument.
    """
    said = None if outcome is None else storable(outcome)
    number = bigint(todo, "the todo")
    values = {"session": session, "agent": agent, "todo": number, "outcome": said, **caller(lease)}
    conn.execute(statement("todos.finish_todo"), values)


def release_todo(
    conn: Connection, session: SessionId, agent: AgentId | None, todo: int, lease: Lease | None = None
) -> None:
    """Give a claimed todo back to the board. Raise TodoTaken if it is another's or done, or UnknownTodo."""
    values = {"session": session, "agent": agent, "todo": bigint(todo, "the todo"), **caller(lease)}
    conn.execute(statement("todos.release_todo"), values)


def read_todos(conn: Connection, session: SessionId, lease: Lease) -> None:
    """Answer a call with all todos that are not done."""
    conn.execute(statement("todos.read_todos"), {"session": session, "agent": lease.agent_id, **caller(lease)})


def shown(conn: Connection, todo: int) -> Mapping[str, Any]:
    """Return a todo, as agents read it."""
    return scalar(conn, statement("todos.shown"), {"todo": todo}, dict)


def shown_done(conn: Connection, session: SessionId, todo: int) -> Mapping[str, Any]:
    """Return a todo that is done and the numbers of the todos that it made ready, as agents read it."""
    return scalar(conn, statement("todos.shown_done"), {"session": session, "todo": todo}, dict)


def shown_board(conn: Connection, session: SessionId) -> Mapping[str, Any]:
    """Return all todos that are not done and the number of the others, as agents read it."""
    return scalar(conn, statement("todos.shown_board"), {"session": session}, dict)


def board(conn: Connection, session: SessionId, done: int = _DONE) -> Sequence[BoardTodo]:
    """Return the todos of a session that are not done, and then the newest of the others."""
    with conn.cursor(row_factory=class_row(BoardTodo)) as cursor:
        return cursor.execute(statement("todos.board"), {"session": session, "done": done}).fetchall()
