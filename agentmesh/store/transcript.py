"""Reading conversations. Only the verbs and the engine's commits write them."""

from __future__ import annotations

from psycopg import Connection

from agentmesh.domain.ids import AgentId
from agentmesh.domain.rows import Row
from agentmesh.domain.todos import Todo, read_todos
from agentmesh.sql import statement
from agentmesh.store.call import scalar, typed_row
from agentmesh.store.mailbox import with_mail


def context(conn: Connection, agent: AgentId, upto: int | None = None) -> list[Row]:
    """Return all rows that the agent's model is sent, in order; with ``upto``, an own seq, as it was at that row."""
    with conn.cursor(row_factory=typed_row(Row)) as cursor:
        return cursor.execute(statement("transcript.context"), {"agent": agent, "upto": upto}).fetchall()


def own(conn: Connection, agent: AgentId, after: int = 0, limit: int = 1000) -> list[Row]:
    """Return the agent's own rows after a seq, of all kinds, at most ``limit``."""
    with conn.cursor(row_factory=typed_row(Row)) as cursor:
        rows = cursor.execute(statement("transcript.own"), {"agent": agent, "after": after, "limit": limit}).fetchall()
    return with_mail(conn, rows)


def inherited(conn: Connection, agent: AgentId) -> list[Row]:
    """Return the rows of other agents that the agent's model is sent, in order."""
    with conn.cursor(row_factory=typed_row(Row)) as cursor:
        return with_mail(conn, cursor.execute(statement("transcript.inherited"), {"agent": agent}).fetchall())


def last_seq(conn: Connection, agent: AgentId) -> int:
    """Return the newest seq of the agent's own rows, or 0 if there are none."""
    return scalar(conn, statement("transcript.last_seq"), {"agent": agent}, int)


def todos(conn: Connection, agent: AgentId) -> list[Todo]:
    """Return the agent's to-do list as its newest todo_write left it; empty if there was none."""
    row = conn.execute(statement("transcript.todos"), {"agent": agent}).fetchone()
    return read_todos(row[0]) if row else []
